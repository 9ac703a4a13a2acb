"""One action to many: the host next to other servers, under the same load.

`peers.py` lists the servers and what their clients send, `peer.*` are those that are only here,
`shapes.py` has the loads and runs them.
"""
