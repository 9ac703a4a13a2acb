"""The form that `answer` shows in a terminal.

draft_state  the states of a shared draft field, the same table as in the page
fields       a request while it is answered: its fields, the position in it, how it ends
sharing      shares what is written with the session, and takes in what others write
drawing      the form as lines of styled text
screen       keys and redrawing, with prompt_toolkit
"""
