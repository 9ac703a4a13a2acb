"""Questions and answers, in every form that they come in.

mcp_forms      an MCP schema as questions, and answers as the content of the form
ask_forms      questions that an agent writes, and the result that it gets
kept_answers   which answers a request keeps: under a draft, and when it is asked again
answer_checks  whether an answer fits its question
formats        text formats, patterns, web addresses
defaults       defaults of questions, and recommended options
review         what would be sent if a request were accepted now
plain_values   answers as plain JSON values, and back
"""
