"""Reducers: the state after an action."""
