"""Fuzzing: whatever a program text, a data file or a store holds, it is read or refused with words.

Run it as long as you like, from a clone:

    PYTHONPATH=tests python -m fuzz --minutes 30
    PYTHONPATH=tests python -m fuzz --only store --seed 7 --cases 1      one case again

A *subject* takes one case from a seed and raises if it meets a bug: anything but an answer that is right or
a `ZodiacError`. The cases run in a process of their own, so a crash of a library is found, too, and one that
hangs is ended.

    mutate     how bytes and texts are harmed
    texts      programs, queries, sessions
    files      data files of every format
    stores     the folder of a store: harmed, and harmed by somebody who knows the checksums
    cases      one case after the other, in a process that may die of them
    __main__   the program
"""
