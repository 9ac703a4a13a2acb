"""Whether an action is allowed.

judge          by the role of its sender, then by the rule for its type
roles          what each role may do, and in which sessions
input_rules    what may be asked, answered and completed
turn_rules     turns and the tool calls in them
session_rules  title, configuration, queue, clients, customizations
full_session   what a session at its size limit still accepts
"""
