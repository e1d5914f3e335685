"""LUBM's universities have the published profile, and its rules give the right numbers on them."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import clingo
import pytest

from zodiacedge.cli.rule_files import check_rules, parse_rules
from zodiacedge.language.ast import Atom, Fact, Variable, fact
from zodiacedge.opening import open_kb
from zodiacedge.terms import IRI, string
from zodiacedge_bench.workloads import lubm
from zodiacedge_bench.workloads.lubm_university import CLASSES, LINKS, TEXTS, universities, university

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.slow

# How many facts of each class and property the LUBM-1 has that everybody uses.
LUBM_1 = {
    "AssistantProfessor": 146,
    "AssociateProfessor": 176,
    "Course": 828,
    "Department": 15,
    "FullProfessor": 125,
    "GraduateCourse": 799,
    "GraduateStudent": 1874,
    "Lecturer": 93,
    "Publication": 5999,
    "ResearchAssistant": 547,
    "ResearchGroup": 224,
    "TeachingAssistant": 407,
    "University": 979,
    "UndergraduateStudent": 5916,
    "advisor": 3101,
    "doctoralDegreeFrom": 540,
    "emailAddress": 8330,
    "headOf": 15,
    "mastersDegreeFrom": 540,
    "memberOf": 7790,
    "name": 15972,
    "publicationAuthor": 10634,
    "researchInterest": 447,
    "subOrganizationOf": 239,
    "takesCourse": 21489,
    "teacherOf": 1627,
    "teachingAssistantOf": 407,
    "telephone": 8330,
    "undergraduateDegreeFrom": 2414,
    "worksFor": 540,
}
# What the reference evaluator derives from the first department of University0.
ONE_DEPARTMENT = {
    "AssistantProfessor": 10,
    "AssociateProfessor": 11,
    "Chair": 1,
    "Course": 102,
    "Department": 1,
    "Employee": 34,
    "Faculty": 34,
    "FullProfessor": 7,
    "GraduateCourse": 51,
    "GraduateStudent": 117,
    "Lecturer": 6,
    "Organization": 210,
    "Person": 623,
    "Professor": 28,
    "Publication": 369,
    "ResearchAssistant": 39,
    "ResearchGroup": 10,
    "Student": 589,
    "TeachingAssistant": 26,
    "UndergraduateStudent": 472,
    "University": 199,
    "Work": 102,
    "advisor": 206,
    "degreeFrom": 219,
    "doctoralDegreeFrom": 34,
    "emailAddress": 623,
    "hasAlumnus": 219,
    "headOf": 1,
    "mastersDegreeFrom": 34,
    "member": 623,
    "memberOf": 623,
    "name": 1096,
    "publicationAuthor": 660,
    "researchInterest": 28,
    "subOrganizationOf": 21,
    "takesCourse": 1697,
    "teacherOf": 102,
    "teachingAssistantOf": 26,
    "telephone": 623,
    "undergraduateDegreeFrom": 151,
    "worksFor": 34,
}
RULES = Path(lubm.__file__).parent / "rules" / "lubm.rules"

Row = tuple[str, ...]


def rows(number: int) -> dict[str, list[Row]]:
    """Return what a university says, as names and texts."""
    one = university(number)
    found = {}
    for name, columns in one.columns.items():
        pools = (one.entities, one.texts if name in TEXTS else one.entities)
        texts = [[pool[at] for at in column] for pool, column in zip(pools, columns, strict=False)]
        found[name] = list(zip(*texts, strict=True))
    return found


@pytest.fixture(scope="module")
def university_0() -> dict[str, list[Row]]:
    return rows(0)


@pytest.fixture(scope="module", params=[0, 1, 1234], ids="University{}".format)
def said(request: pytest.FixtureRequest) -> dict[str, list[Row]]:
    return rows(request.param)


def kind(name: str) -> str:
    """Return what an entity is by its name: `Course` for `Department0-University0-Course7`."""
    return name.rsplit("-", maxsplit=1)[-1].rstrip("0123456789")


def place(name: str) -> str:
    """Return the department in an entity's name."""
    return "-".join(name.split("-")[:2])


def in_range(counts: Iterable[int], low: int, high: int) -> bool:
    """Whether numbers lie between the ends of a range and use all of it."""
    found = set(counts)
    return found <= set(range(low, high + 1)) and {low, high} <= found


@pytest.mark.parametrize("name", sorted(LUBM_1))
def test_university_0_is_as_large_as_lubm_1(university_0: dict[str, list[Row]], name: str) -> None:
    assert abs(len(university_0[name]) - LUBM_1[name]) <= 0.05 * LUBM_1[name]


def test_every_class_and_property_of_lubm_1_is_there(university_0: dict[str, list[Row]]) -> None:
    assert {*CLASSES, *LINKS, *TEXTS} == set(LUBM_1) == set(university_0)


def test_no_fact_is_said_twice(said: dict[str, list[Row]]) -> None:
    assert {name: len(found) for name, found in said.items()} == {n: len(set(f)) for n, f in said.items()}


def test_departments_are_staffed_by_the_profile(said: dict[str, list[Row]]) -> None:
    ranges = {
        "FullProfessor": (7, 10),
        "AssociateProfessor": (10, 14),
        "AssistantProfessor": (8, 11),
        "Lecturer": (5, 7),
        "ResearchGroup": (10, 20),
    }
    departments = len(said["Department"])
    assert 15 <= departments <= 25
    for name, (low, high) in ranges.items():
        counts = Counter(place(entity) for (entity,) in said[name])
        assert len(counts) == departments
        assert low <= min(counts.values()) <= max(counts.values()) <= high


def test_students_are_counted_by_faculty(said: dict[str, list[Row]]) -> None:
    faculty = Counter(place(person) for person, _ in said["worksFor"])
    for name, low, high in (("UndergraduateStudent", 8, 14), ("GraduateStudent", 3, 4)):
        for department, count in Counter(place(student) for (student,) in said[name]).items():
            assert low <= count / faculty[department] <= high


def test_every_course_has_one_teacher(said: dict[str, list[Row]]) -> None:
    courses = [course for _, course in said["teacherOf"]]
    assert sorted((c,) for c in courses) == sorted(said["Course"] + said["GraduateCourse"])
    taught = Counter((teacher, kind(course)) for teacher, course in said["teacherOf"])
    assert in_range(taught.values(), 1, 2)
    assert len(taught) == 2 * len(said["worksFor"])


def test_students_take_courses_of_their_own_kind_and_department(said: dict[str, list[Row]]) -> None:
    assert {(kind(s), kind(c)) for s, c in said["takesCourse"]} == {
        ("UndergraduateStudent", "Course"),
        ("GraduateStudent", "GraduateCourse"),
    }
    assert all(place(student) == place(course) for student, course in said["takesCourse"])
    taken = Counter(student for student, _ in said["takesCourse"])
    assert in_range((n for s, n in taken.items() if kind(s) == "UndergraduateStudent"), 2, 4)
    assert in_range((n for s, n in taken.items() if kind(s) == "GraduateStudent"), 1, 3)
    assert len(taken) == len(said["memberOf"])


def test_every_graduate_and_a_fifth_of_the_others_have_a_professor_as_advisor(
    said: dict[str, list[Row]],
) -> None:
    advised = Counter(kind(student) for student, _ in said["advisor"])
    assert advised["GraduateStudent"] == len(said["GraduateStudent"])
    assert advised["UndergraduateStudent"] == pytest.approx(len(said["UndergraduateStudent"]) / 5, rel=0.1)
    assert {kind(advisor) for _, advisor in said["advisor"]} == {
        "FullProfessor",
        "AssociateProfessor",
        "AssistantProfessor",
    }


def test_assistants_are_graduates_who_teach_or_research_but_not_both(said: dict[str, list[Row]]) -> None:
    teaching, research = set(said["TeachingAssistant"]), set(said["ResearchAssistant"])
    assert teaching | research <= set(said["GraduateStudent"])
    assert not teaching & research
    graduates = Counter(place(student) for (student,) in said["GraduateStudent"])
    for department, count in graduates.items():
        assert count // 5 <= sum(place(s) == department for (s,) in teaching) <= count // 4
        assert count // 4 <= sum(place(s) == department for (s,) in research) <= count // 3
    assert {(person,) for person, _ in said["teachingAssistantOf"]} == teaching
    assert len({course for _, course in said["teachingAssistantOf"]}) == len(teaching)
    assert {kind(course) for _, course in said["teachingAssistantOf"]} == {"Course"}


def test_publications_have_one_author_of_the_faculty_and_graduates_beside(
    said: dict[str, list[Row]],
) -> None:
    ranges = {
        "FullProfessor": (15, 20),
        "AssociateProfessor": (10, 18),
        "AssistantProfessor": (5, 10),
        "Lecturer": (1, 5),  # or none, and then nothing is said
        "GraduateStudent": (1, 5),  # as lecturers
    }
    written = Counter(author for _, author in said["publicationAuthor"])
    for name, (low, high) in ranges.items():
        assert in_range((n for author, n in written.items() if kind(author) == name), low, high)
    faculty = [p for p, author in said["publicationAuthor"] if kind(author) != "GraduateStudent"]
    assert sorted((p,) for p in faculty) == sorted(said["Publication"])


def test_one_full_professor_heads_each_department(said: dict[str, list[Row]]) -> None:
    assert sorted((d,) for _, d in said["headOf"]) == sorted(said["Department"])
    assert {kind(head) for head, _ in said["headOf"]} == {"FullProfessor"}
    assert set(said["headOf"]) <= set(said["worksFor"])


def test_names_are_spelt_as_in_lubm_1(university_0: dict[str, list[Row]]) -> None:
    said = university_0
    person = "Department3-University0-Lecturer2"
    assert (person, "Lecturer2") in said["name"]
    assert (person, "Lecturer2@Department3.University0.edu") in said["emailAddress"]
    assert (person, "xxx-xxx-xxxx") in said["telephone"]
    paper = "Department0-University0-FullProfessor0-Publication4"
    assert (paper, "Publication4") in said["name"]
    assert (paper, "Department0-University0-FullProfessor0") in said["publicationAuthor"]
    assert ("Department0-University0", "University0") in said["subOrganizationOf"]
    assert ("Department0-University0-ResearchGroup0", "Department0-University0") in said["subOrganizationOf"]
    assert {text for _, text in said["researchInterest"]} == {f"Research{n}" for n in range(30)}


def test_a_university_beyond_those_that_give_degrees_is_one_too() -> None:
    found = rows(1234)
    assert found["University"][0] == ("University1234",)
    assert ("University1234", "University1234") in found["name"]


def test_fewer_universities_are_the_first_of_more() -> None:
    two = list(lubm.facts(2, departments=1))
    assert list(islice(lubm.facts(3, departments=1), len(two))) == two
    assert list(lubm.facts(2, departments=1)) == two


def test_fewer_departments_are_the_first_of_more() -> None:
    assert set(lubm.facts(1, departments=2)) < set(lubm.facts(1, departments=3))
    assert university(2, departments=25).entities == university(2).entities


def test_another_seed_makes_other_universities() -> None:
    assert set(lubm.facts(1, departments=1, seed=1)) != set(lubm.facts(1, departments=1))


def test_several_universities_say_nothing_twice() -> None:
    facts = list(lubm.facts(4, departments=2))
    assert len(set(facts)) == len(facts)
    assert sum(len(one.columns["Department"][0]) for one in universities(4, departments=2)) == 8


def test_no_department_and_no_university_are_no_trouble() -> None:
    entity = string("University0")
    assert set(lubm.facts(1, departments=0)) == {
        fact("src_University", entity),
        fact("src_name", entity, string("University0")),
    }
    assert list(lubm.facts(0)) == []


def test_entities_are_strings_or_iris() -> None:
    def first(*, iris: bool) -> Fact:
        return next(f for f in lubm.facts(1, departments=1, iris=iris) if f.relation == "src_emailAddress")

    name, mail = (
        "Department0-University0-FullProfessor0",
        string("FullProfessor0@Department0.University0.edu"),
    )
    assert first(iris=False) == fact("src_emailAddress", string(name), mail)
    assert first(iris=True) == fact("src_emailAddress", IRI(name), mail)


def test_the_rules_are_128_and_sound() -> None:
    reading = check_rules(parse_rules([str(RULES)]))
    assert [finding for finding in reading.findings if finding.severity == "error"] == []
    assert [rule.label for rule in reading.program.rules] == [f"r{n}" for n in range(1, 129)]


def test_the_rules_that_come_and_go_are_those_of_the_bench() -> None:
    heads = {
        rule.label: rule.head.predicate.name for rule in check_rules(parse_rules([str(RULES)])).program.rules
    }
    about = {"Publication", "Work", "name", "researchInterest"}
    assert {label for label, head in heads.items() if head in about} == set(lubm.PUBLICATION_RULES)
    assert list(heads)[-8:] == list(lubm.LAST_RULES)


@pytest.mark.parametrize("iris", [False, True])
def test_the_rules_give_the_right_numbers(*, iris: bool) -> None:
    assert derived(1, departments=1, iris=iris) == ONE_DEPARTMENT


def test_clingo_finds_as_many_facts_for_a_whole_university() -> None:
    control = clingo.Control(["--warn=none"])
    for rule in check_rules(parse_rules([str(RULES)])).program.rules:
        atoms = [rule.head, *(c for c in rule.body if isinstance(c, Atom))]
        assert len(atoms) == len(rule.body) + 1
        head, *body = map(as_asp, atoms)
        control.add("base", [], f"{head} :- {', '.join(body)}.")
    numbers: dict[str, int] = {}
    with control.backend() as backend:
        for relation, table in lubm.tables(1).items():
            cells = zip(*(column.to_pylist() for column in table.columns), strict=True)
            for row in cells:
                terms = [clingo.Number(numbers.setdefault(cell, len(numbers))) for cell in row]
                backend.add_rule([backend.add_atom(clingo.Function(f"p_{relation}", terms))])
    control.ground([("base", [])])
    names = [atom.symbol.name for atom in control.symbolic_atoms]
    assert sum(not name.startswith("p_src_") for name in names) == lubm.DERIVED[1]


def as_asp(atom: Atom) -> str:
    name, arity = atom.predicate
    return f"p_{name}({', '.join(a.name for a in atom.args[:arity] if isinstance(a, Variable))})"


def derived(count: int, *, departments: int | None = None, iris: bool = False) -> dict[str, int]:
    """Return how many facts the reference evaluator derives per predicate, where there are any."""
    kb = open_kb(engine="reference")
    with kb.change() as change:
        change.add_rules(lubm.rules(), "lubm.rules")
        change.add_facts((f.relation, *f.args) for f in lubm.facts(count, departments=departments, iris=iris))
    return {name: found for name, found in kb.derived().items() if found}
