"""The embedded engine: compiled kernels on columns of term ids, in one process, without a JVM.

    compiled, layout          kernels, and where things stand in the memory that they read
    dictionary, interning     terms as numbers
    table, rowset             rows of numbers, what finds them, and the kernels on one table
    store                     explicit facts and segments behind one view per relation
    batch, ntriples*          facts on their way in and out
    assemble, machine         plans to code, and what runs it; execute, arithmetic
    host, text_columns        what the host computes; aggregates
    node, halves              one node from nothing, by one thread or two; modules, reachability
    overlay, owners, versions the next version beside the old one; pair, unseen, net: what differs
    shape, programs           what a change asks of a node's rules, planned once
    maintain, backward        one node brought up to date; classes: symmetric and transitive ones
    inherit                   what nodes take over from nodes that are no more
    choose                    whether a node is maintained or evaluated anew
    attempt, engine, query    a whole change; states; questions

They are best read in this order.
"""
