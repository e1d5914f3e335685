"""Changes of rules and facts, and what they make of the materialisation.

    change       what is asked for, and what it comes to on a program
    work_out     a change evaluated, with its report
    uninterrupted  steps of a commit that Ctrl-C does not cut in two
    program      the rules in force, their graph, and what finds rules by name
    report       what a commit did
    subscribe    who is told
    session      changes written down in a file
    verify       whether what is kept is what an evaluation from nothing gives
    admission    changes one after the other, none from inside
    turn         one thread at a time in the engine
    hints        what a user may have meant

How an engine brings its facts up to date is the engine's business.
"""
