"""The knowledge base: the façade that users import, and the life of a change.

A change goes through these modules in this order; how an engine maintains its facts is left to `engine`, and
what outlives the process to `store`.

    arguments       arguments of callers, checked before anything is done
    rule_base       the rules in force and their graph, with an index of rules by name
    change          a change as a value, and the rule delta that it comes to
    transaction     a change as it is collected, until it is committed
    apply           a change checked, evaluated by the engine, and reported
    report          what a commit did: net change, nodes, strategies
    subscribe       callbacks that are called with the net change of a commit
    warnings        warnings that only the facts can tell
    query           queries: checked, prepared, answered
    verify          the materialisation compared with an evaluation from scratch
    slice           the facts and rules that one device needs
    locks           changes one after the other, one thread at a time in the engine
    knowledge_base  the façade: all of these together
"""
