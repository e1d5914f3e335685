"""Explanations: why a fact is there, why it is not, and which changes inserted and deleted it.

Nothing is recorded while rules are evaluated: answers come from the facts of a version, by lookups.

proof           proofs as values: steps, premises, explicit facts
missing         answers to "why not" as values
history         answers to "since when" as values
budget          the instances and seconds that an explanation may spend
naming          names for anonymous variables, and values for variables
instances       instances of rules whose head is a given fact
closure         paths of edges that prove a fact of a transitive relation
linear_closure  shortest paths that prove a fact of a relation of paths
look_ahead      patterns of the facts that proofs may need, to fetch them together
search          the search for proofs of least height
premises        the premises of a step, with values filled in
why_not         the search for what a rule lacks
explainer       questions about one version, and their answers
why_changed     which part of an edit made a proof, or broke it
forms           answers as text, Markdown, HTML, SVG and JSON
"""
