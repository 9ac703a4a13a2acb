"""The Agent Host Protocol 0.9 and 1.x: what it has that 0.3.0 has not.

Shapes that are the same are those of `schemas.ahp`. `state` holds what snapshots show, `actions`
what changes it, `methods` the commands and notifications.
"""
