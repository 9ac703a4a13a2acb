"""Rules: whether an action is allowed."""
