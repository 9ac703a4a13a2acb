"""Transports: how requests and frames come from the network, and messages reach it.

admission           how many connections may be open, and which are closed when there are too many
http_protocol       uvicorn's HTTP protocol, with bounds on size and time
websocket_protocol  uvicorn's WebSocket protocol, handing whole frames to the host
outbox              frames on their way to one socket
endpoint            the WebSocket endpoint, under our protocol or any other server
"""
