"""Random stratified programs and random changes, for every engine.

Everything is drawn through a `Dice`, so the same generator serves two ways: as hypothesis strategies,
which shrink (`programs()`, `sessions()`), and from a seed, which is fast (`random_program(Seeded(7))`).
What comes out is plain data that knows no engine: `RandomProgram`, `RandomChange`, `RandomSession`.
A program is stratified by construction: each predicate has a level, a rule reads its own level and
below positively, and only what is strictly below under negation or inside an aggregate. All rules
that are drawn for one `Schema` can stand together, so any mix of them is a legal program.

In reading order: `dice`, `schema` (predicates, levels, columns), `rules` (one random rule as text),
`programs`, `changes`, `evaluation` (from text or a random program to a materialisation), `brute` (a
second, dumb evaluator), `asp` (the same for clingo), `lifting` (constants from facts),
`scale` (how many examples), `timed` (sessions with a clock),
`lockstep` (changes on two engines).
"""

from strategies.brute import Brute
from strategies.changes import RandomChange, RandomSession, apply_change, random_session, sessions
from strategies.dice import Dice, Seeded
from strategies.evaluation import Evaluated, evaluate_program, evaluate_text, keyed
from strategies.programs import RandomProgram, programs, random_program
from strategies.scale import examples
from strategies.schema import FULL, INTEGERS, TINY, Profile, Schema

__all__ = [
    "FULL",
    "INTEGERS",
    "TINY",
    "Brute",
    "Dice",
    "Evaluated",
    "Profile",
    "RandomChange",
    "RandomProgram",
    "RandomSession",
    "Schema",
    "Seeded",
    "apply_change",
    "evaluate_program",
    "evaluate_text",
    "examples",
    "keyed",
    "programs",
    "random_program",
    "random_session",
    "sessions",
]
