"""Rule text to checked syntax tree.

vocabulary         names of functions, aggregates and reserved prefixes
ast                the syntax tree
names              names given outside a program text: prefixes and full IRIs
scanner            text to tokens
mistakes           findings for text that leaves the grammar: habits of other languages
expression_parser  tokens to terms and expressions
parser             tokens to syntax tree, with every error of a text in one run
printer            syntax tree to text
formatter          canonical layout of a text, with its comments
unify              whether two atoms have a common instance
labelling          canonical labelling of the variables of a rule
canonical          the key of a rule, equal up to variable names and body order
safety             which conjunct binds which variable
windows            conditions on `now` as atoms of a hidden relation
checks             semantic checks of a program, all findings at once
lint               warnings about rules that are sound and look like a mistake
"""
