"""`zodiac shell`: queries and changes at a prompt, or from a pipe.

statements   lines into statements
interpreter  what a statement does to the knowledge base, and what it prints
terminal     the prompt: history, and completion of predicates, labels and words
shell        the command
"""
