"""The embedded engine: compiled kernels on columns of term ids, in one process, without a JVM.

    compiled, kernel_cache, warm             kernels, where they are kept, and all of them beforehand
    layout                                   where things stand in the memory that they read
    dictionary, interning, fingerprints      terms as numbers: of this process, and the same in every one
    table, rowset, rows, ordering, deletion  rows of numbers, what finds them, and the kernels on one table
    store                                    explicit facts and segments behind one view per relation
    batch, ntriples*                         facts on their way in and out
    expression_code, arithmetic              expressions to postfix code, and what evaluates it
    assemble, expression_steps, reads        plans to code
    machine, cursors, fused, execute         what runs it
    host, text_columns, aggregates           what the host computes
    node, halves, modules, reachability      one node from nothing, by one thread or two, or by a module
    overlay, owners, versions                the next version beside the old one
    pair, unseen, net, touched, exchange     what differs between the two
    shape, programs                          what a change asks of a node's rules, planned once
    maintain, backward, classes, copies      one node brought up to date
    keep                                     one that was evaluated anew, brought to what that gave
    inherit                                  what nodes take over from nodes that are no more
    choose, clock                            whether a node is maintained or evaluated anew
    attempt, engine                          a whole change; states
    query, asking                            questions, and those that are asked again
    stored, keeping                          facts as parts of a store, and back

They are best read in this order.
"""
