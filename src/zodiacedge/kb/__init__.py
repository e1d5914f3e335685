"""The knowledge base: the façade that users import, and the life of a change.

A change goes through these modules in this order; how an engine maintains its facts is left to `engine`, and
what outlives the process to `store`.

    arguments       checks of arguments before any work is done
    time            the clock of a knowledge base
    rule_base       the rules in force and their graph, with an index of rules by name
    warnings        warnings that need the facts or the graph
    diagnose        all findings about program texts
    change          a change as a value, and its rule delta
    transaction     collects a change until it is committed
    apply           checks a change, lets the engine evaluate it, and reports it
    tables          the facts of one predicate as a table
    report          the report of a commit: net change, nodes, strategies
    subscribe       callbacks that are called with the net change of a commit
    answers         the answers to a query
    query           checks and prepares queries
    verify          compares the materialisation with an evaluation from scratch
    slice           the facts and rules that one device needs
    locks           one change at a time, one thread at a time in the engine
    preview         previews of changes, for people to decide on
    knowledge_base  the façade that combines all of these
"""
