"""Rule text to checked syntax tree.

vocabulary  names of functions, aggregates and reserved prefixes
ast         the syntax tree
scanner     text to tokens
mistakes    usual mistakes of other languages, and what to write instead
parser      tokens to syntax tree, with every error of a text in one run
spelling    names and literals as they are written
printer     syntax tree to text
unify       whether two atoms have a common instance
labelling   a canonical order of conjuncts and names of variables
canonical   the key of a rule: equal up to names and order
safety      which conjunct binds which variable, and in which order
checks      what is wrong with a program: all findings at once
"""
