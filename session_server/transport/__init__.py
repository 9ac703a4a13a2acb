"""WebSocket transports: how a connection's frames reach the network and come from it."""
