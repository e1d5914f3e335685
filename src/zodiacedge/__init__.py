"""ZodiacEdge: a Datalog engine whose rules are live."""
