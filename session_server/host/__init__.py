"""The live host: channels on a log, and the protocol that each client speaks to them.

No socket and no file in here: bytes come in through `Connection.receive`, bytes go out through an
`Outbox`, and durability is the log's. Transports and HTTP stand above.
"""
