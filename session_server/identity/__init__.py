"""Who is calling: credentials become principals, and strangers are turned away at the door.

Above it stand HTTP and the WebSocket endpoint; below it the host, whose log keeps the tokens.
"""
