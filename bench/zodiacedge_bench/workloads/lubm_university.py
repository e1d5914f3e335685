"""One university of LUBM, drawn from the published profile of its data generator.

The profile is the one that LUBM's authors publish with their generator UBA. A university is a function of
the seed and its number, and a department of the seed and both numbers, so all are independent. Facts are
columns of positions into two lists, names of entities and texts; `lubm` and `lubm_files` turn them into
terms and files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import SeedSequence, default_rng

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.random import Generator
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]

# The first seed with which University0 has 15 departments, as in the common LUBM-1, and within 5 % the same
# number of facts of each class and property. Other seeds give universities of the same profile.
SEED = 221

# Ranges of numbers, both ends included.
DEPARTMENTS = (15, 25)
FACULTY = {
    "FullProfessor": (7, 10),
    "AssociateProfessor": (10, 14),
    "AssistantProfessor": (8, 11),
    "Lecturer": (5, 7),
}
PUBLICATIONS = {
    "FullProfessor": (15, 20),
    "AssociateProfessor": (10, 18),
    "AssistantProfessor": (5, 10),
    "Lecturer": (0, 5),
}
RESEARCH_GROUPS = (10, 20)
COURSES_OF_TEACHER = (1, 2)
UNDERGRADUATES_PER_FACULTY = (8, 14)
GRADUATES_PER_FACULTY = (3, 4)
COURSES_OF_UNDERGRADUATE = (2, 4)
COURSES_OF_GRADUATE = (1, 3)
PUBLICATIONS_OF_GRADUATE = (0, 5)
# One in this many.
UNDERGRADUATES_PER_ADVISED = 5
GRADUATES_PER_TEACHING_ASSISTANT = (5, 4)
GRADUATES_PER_RESEARCH_ASSISTANT = (4, 3)
# Out of this many.
RESEARCH_INTERESTS = 30
DEGREE_UNIVERSITIES = 1000

TELEPHONE = "xxx-xxx-xxxx"
CLASSES = (
    *("AssistantProfessor", "AssociateProfessor", "Course", "Department", "FullProfessor"),
    *("GraduateCourse", "GraduateStudent", "Lecturer", "Publication", "ResearchAssistant"),
    *("ResearchGroup", "TeachingAssistant", "UndergraduateStudent", "University"),
)
LINKS = (
    *("advisor", "doctoralDegreeFrom", "headOf", "mastersDegreeFrom", "memberOf", "publicationAuthor"),
    *("subOrganizationOf", "takesCourse", "teacherOf", "teachingAssistantOf"),
    *("undergraduateDegreeFrom", "worksFor"),
)
TEXTS = ("emailAddress", "name", "researchInterest", "telephone")
_DEGREES = ("undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom")


@dataclass(frozen=True, slots=True)
class University:
    """A university's facts: columns of positions, per class or property.

    A first column points into `entities`, and so does a second column of `LINKS`; one of `TEXTS` points
    into `texts`. The first entry of `University` is this one, the others are those that gave degrees.
    """

    entities: list[str]
    texts: list[str]
    columns: Mapping[str, tuple[Ids, ...]]


def university(number: int, *, seed: int = SEED, departments: int | None = None) -> University:
    """Return a university by its number, with all or only the first of its departments."""
    draft = _Draft()
    # Universities that give degrees come first: their number is their position.
    draft.new(f"University{n}" for n in range(DEGREE_UNIVERSITIES))
    own = draft.new([f"University{number}"]) if number >= DEGREE_UNIVERSITIES else np.array([number])
    draft.add_text("name", own, [f"University{number}"])
    count = _one(default_rng(SeedSequence(seed, spawn_key=(number,))), DEPARTMENTS)
    for at in range(count if departments is None else min(count, departments)):
        rng = default_rng(SeedSequence(seed, spawn_key=(number, at)))
        _Department(draft, rng, f"University{number}", f"Department{at}").draw(own)
    degrees = np.unique(np.concatenate([column for name in _DEGREES for _, column in draft.parts[name]]))
    draft.add("University", np.concatenate([own, degrees[degrees != own]]))
    return draft.finish()


def universities(count: int, *, seed: int = SEED, departments: int | None = None) -> Iterator[University]:
    """Yield universities one after the other, without duplicate facts.

    Only facts of the class `University` could repeat: each is kept where it first appears.
    """
    seen: set[str] = set()
    for number in range(count):
        made = university(number, seed=seed, departments=departments)
        (members,) = made.columns["University"]
        fresh = members[[made.entities[at] not in seen for at in members]]
        seen.update(made.entities[at] for at in fresh)
        yield University(made.entities, made.texts, {**made.columns, "University": (fresh,)})


@dataclass(slots=True)
class _Draft:
    # A university under construction: names, the position of each text, and columns in pieces.

    entities: list[str] = field(default_factory=list)
    texts: dict[str, int] = field(default_factory=dict)
    parts: dict[str, list[tuple[Ids, ...]]] = field(
        default_factory=lambda: {n: [_nothing(n)] for n in (*CLASSES, *LINKS, *TEXTS)}
    )

    def new(self, names: Iterable[str]) -> Ids:
        # Return the positions of new entities.
        start = len(self.entities)
        self.entities += names
        return np.arange(start, len(self.entities))

    def add(self, name: str, *columns: Ids) -> None:
        # Add facts; a second column of one entity is repeated for all rows.
        self.parts[name].append(tuple(np.broadcast_to(c, len(columns[0])) for c in columns))

    def add_text(self, name: str, subjects: Ids, texts: Iterable[str]) -> None:
        known = self.texts
        self.add(name, subjects, np.array([known.setdefault(text, len(known)) for text in texts]))

    def finish(self) -> University:
        columns = {
            name: tuple(np.concatenate(pieces) for pieces in zip(*parts, strict=True))
            for name, parts in self.parts.items()
        }
        return University(self.entities, list(self.texts), columns)


@dataclass(frozen=True, slots=True)
class _Department:
    # A department under construction: its people and their roles.

    draft: _Draft
    rng: Generator
    university: str
    name: str

    def draw(self, university: Ids) -> None:
        # The data of a seed depends on the order of the draws.
        here = self.draft.new([f"{self.name}-{self.university}"])
        self.draft.add("Department", here)
        self.draft.add("subOrganizationOf", here, university)
        self.draft.add_text("name", here, [self.name])
        self._groups(here)
        ranks = {rank: self._people(rank, _one(self.rng, many)) for rank, many in FACULTY.items()}
        faculty = np.concatenate(list(ranks.values()))
        professors = faculty[: -len(ranks["Lecturer"])]
        self._employ(faculty, professors, here)
        self._link("headOf", here, ranks["FullProfessor"], turned=True)
        publications = np.concatenate([self._publish(r, people) for r, people in ranks.items()])
        courses = self._teach("Course", faculty)
        graduate_courses = self._teach("GraduateCourse", faculty)
        undergraduates = self._enrol("UndergraduateStudent", UNDERGRADUATES_PER_FACULTY, faculty, here)
        self._several("takesCourse", undergraduates, courses, COURSES_OF_UNDERGRADUATE)
        lucky = self.rng.integers(0, UNDERGRADUATES_PER_ADVISED, len(undergraduates)) == 0
        self._link("advisor", undergraduates[lucky], professors)
        graduates = self._enrol("GraduateStudent", GRADUATES_PER_FACULTY, faculty, here)
        self._several("takesCourse", graduates, graduate_courses, COURSES_OF_GRADUATE)
        self._link("advisor", graduates, professors)
        self._degree("undergraduateDegreeFrom", graduates)
        self._several("publicationAuthor", graduates, publications, PUBLICATIONS_OF_GRADUATE, turned=True)
        self._assist(graduates, courses)

    def _groups(self, here: Ids) -> None:
        groups = self._make("ResearchGroup", _one(self.rng, RESEARCH_GROUPS))
        self.draft.add("subOrganizationOf", groups, here)

    def _employ(self, faculty: Ids, professors: Ids, here: Ids) -> None:
        self.draft.add("worksFor", faculty, here)
        for degree in _DEGREES:
            self._degree(degree, faculty)
        interests = self.rng.integers(0, RESEARCH_INTERESTS, len(professors))
        self.draft.add_text("researchInterest", professors, (f"Research{i}" for i in interests))

    def _publish(self, rank: str, people: Ids) -> Ids:
        # Every publication has one author of the faculty, whose name it carries.
        counts = _many(self.rng, PUBLICATIONS[rank], len(people))
        authors = np.repeat(people, counts)
        titles = [f"Publication{n}" for count in counts for n in range(count)]
        named = [f"{self.draft.entities[author]}-{t}" for author, t in zip(authors, titles, strict=True)]
        publications = self.draft.new(named)
        self.draft.add("Publication", publications)
        self.draft.add_text("name", publications, titles)
        self.draft.add("publicationAuthor", publications, authors)
        return publications

    def _teach(self, kind: str, faculty: Ids) -> Ids:
        # Every course has one teacher.
        teachers = np.repeat(faculty, _many(self.rng, COURSES_OF_TEACHER, len(faculty)))
        courses = self._make(kind, len(teachers))
        self.draft.add_text("name", courses, (f"{kind}{n}" for n in range(len(courses))))
        self.draft.add("teacherOf", teachers, courses)
        return courses

    def _enrol(self, kind: str, per_faculty: tuple[int, int], faculty: Ids, here: Ids) -> Ids:
        low, high = per_faculty
        students = self._people(kind, _one(self.rng, (low * len(faculty), high * len(faculty))))
        self.draft.add("memberOf", students, here)
        return students

    def _assist(self, graduates: Ids, courses: Ids) -> None:
        # No student assists in both; a course has at most one teaching assistant.
        few, many = (len(graduates) // n for n in GRADUATES_PER_TEACHING_ASSISTANT)
        teaching = _one(self.rng, (few, many))
        few, many = (len(graduates) // n for n in GRADUATES_PER_RESEARCH_ASSISTANT)
        research = _one(self.rng, (few, many))
        order = self.rng.permutation(graduates)
        assistants = np.sort(order[:teaching])
        self.draft.add("TeachingAssistant", assistants)
        self.draft.add("teachingAssistantOf", assistants, self.rng.permutation(courses)[:teaching])
        self.draft.add("ResearchAssistant", np.sort(order[teaching : teaching + research]))

    def _people(self, kind: str, count: int) -> Ids:
        people = self._make(kind, count)
        places = f"{self.name}.{self.university}.edu"
        self.draft.add_text("name", people, (f"{kind}{n}" for n in range(count)))
        self.draft.add_text("emailAddress", people, (f"{kind}{n}@{places}" for n in range(count)))
        self.draft.add_text("telephone", people, [TELEPHONE] * count)
        return people

    def _make(self, kind: str, count: int) -> Ids:
        made = self.draft.new(f"{self.name}-{self.university}-{kind}{n}" for n in range(count))
        self.draft.add(kind, made)
        return made

    def _degree(self, degree: str, people: Ids) -> None:
        self.draft.add(degree, people, self.rng.integers(0, DEGREE_UNIVERSITIES, len(people)))

    def _link(self, name: str, subjects: Ids, choice: Ids, *, turned: bool = False) -> None:
        # Each subject with one random choice.
        chosen = choice[self.rng.integers(0, len(choice), len(subjects))]
        self.draft.add(name, *((chosen, subjects) if turned else (subjects, chosen)))

    def _several(
        self, name: str, subjects: Ids, choice: Ids, how_many: tuple[int, int], *, turned: bool = False
    ) -> None:
        # Each subject with several distinct random choices.
        counts = _many(self.rng, how_many, len(subjects))
        drawn = choice[_distinct(self.rng, len(subjects), how_many[1], len(choice))]
        chosen = drawn[np.arange(how_many[1]) < counts[:, None]]
        repeated = np.repeat(subjects, counts)
        self.draft.add(name, *((chosen, repeated) if turned else (repeated, chosen)))


def _nothing(name: str) -> tuple[Ids, ...]:
    # A piece without rows, for universities without facts of a kind.
    return tuple(np.empty(0, np.int64) for _ in range(1 if name in CLASSES else 2))


def _one(rng: Generator, ends: tuple[int, int]) -> int:
    return int(rng.integers(ends[0], ends[1] + 1))


def _many(rng: Generator, ends: tuple[int, int], count: int) -> Ids:
    return rng.integers(ends[0], ends[1] + 1, count)


def _distinct(rng: Generator, rows: int, columns: int, below: int) -> Ids:
    # Rows of distinct numbers: the n-th is drawn among the remaining ones, and skips smaller taken ones.
    drawn = np.empty((rows, columns), np.int64)
    for at in range(columns):
        number = rng.integers(0, below - at, rows)
        for taken in np.sort(drawn[:, :at], axis=1).T:
            number += number >= taken
        drawn[:, at] = number
    return drawn
