"""Who may connect: credentials become principals, and everyone else is refused.

exposure     where the host listens, who can reach it, and whether that requires a token
origins      the allowed hosts, origins and proxies
credentials  credentials in requests, and the principals they prove
tokens       tokens and share links that the host issues
signing_key  the key that signs them, and files that only their owner may read
failed_credentials   counted, logged, throttled
"""
