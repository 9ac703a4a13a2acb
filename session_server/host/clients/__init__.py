"""Who is there.

open_connections  connections by credential, to close them
known_clients     clients by id, also those that are away
active_clients    which client offers its tools to a session
askers            agents that wait for answers, and how long they may be away
presence          who looks at a session, and types where
list_watchers     who is told of new and changed sessions
"""
