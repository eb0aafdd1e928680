"""Data of any size for the demo and the benchmark, the same on every machine: standard library only.

    python -m tests.bench.data sensors 100000 > sensors.ntt
    python -m tests.bench.data platforms > platforms.nt

The shapes are a sensor network (eight triples per observation, some static data about the sensors) and a university
with its people, courses and publications under a small hierarchy of classes and properties.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count
from random import Random

RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
SENSOR = "http://example.org/sensor#"
UNIVERSITY = "http://example.org/university#"

SENSORS = 1000
PLATFORMS = 50
START = 1_700_000_000_000
STEP = 10
"""The milliseconds between two observations."""


def statement(subject: str, predicate: str, object: str) -> str:
    return f"{subject} {predicate} {object} ."


# Only Random.random() is used: it alone is documented to give the same numbers in every version of Python.
def below(random: Random, count: int) -> int:
    return int(random.random() * count)


# -- the sensor network ------------------------------------------------------------------------------------------------


def s(name: str) -> str:
    return f"<{SENSOR}{name}>"


def sensors(size: int) -> Iterator[str]:
    """Yields timed N-Triples: `size` triples of observations, eight for each, with one observation every `STEP` ms."""
    triples = (triple for observation in observations() for triple in observation)
    for number, triple in zip(range(size), triples, strict=False):
        yield f"{START + number // 8 * STEP} {triple}"


def skewed(size: int) -> Iterator[str]:
    """Yields the lines of `sensors`, except that one sensor produces every second observation."""
    for number, line in enumerate(sensors(size)):
        if number % 16 == 1:
            line = f"{line.rsplit(' ', 2)[0]} {s('sensor0')} ."
        yield line


def skewed_streams(size: int) -> Iterator[str]:
    """Yields the lines of `skewed`. Each of the first observations is followed by the platform of one more sensor."""
    lines: list[str] = []
    for number, line in enumerate(skewed(size)):
        lines.append(line)
        sensor, last = divmod(number, 8)
        if last == 7 and sensor < SENSORS:
            place = statement(s(f"sensor{sensor}"), s("onPlatform"), s(f"platform{sensor % PLATFORMS}"))
            lines.append(f"{line.partition(' ')[0]} {place}")
    yield from lines[:size]


def observations() -> Iterator[list[str]]:
    """Yields N-Triples without end: the eight triples of each observation."""
    random = Random(1)
    for number in count():
        yield list(_observation(number, random))


def _observation(number: int, random: Random) -> Iterator[str]:
    observation, value = s(f"o{number}"), s(f"v{number}")
    kind = "SensorOutput" if random.random() < 0.8 else "Heartbeat"
    degrees = f"{random.random() * 50 - 10:.1f}".removesuffix(".0")  # as some stores write it, whatever they are given
    yield statement(observation, RDF_TYPE, s(kind))
    yield statement(observation, s("isProducedBy"), s(f"sensor{below(random, SENSORS)}"))
    yield statement(observation, s("hasValue"), value)
    yield statement(observation, s("observationResultTime"), f'"{START + number * STEP}"^^<{XSD}long>')
    yield statement(observation, s("observedProperty"), s("temperature"))
    yield statement(value, RDF_TYPE, s("QuantityValue"))
    yield statement(value, s("numericValue"), f'"{degrees}"^^<{XSD}double>')
    yield statement(value, s("unit"), s("celsius"))


def platforms() -> Iterator[str]:
    """Yields N-Triples: the platform of each sensor, the tree of places of the platforms, the sensors in repair, and
    the classes of observed things."""
    for number in range(SENSORS):
        yield statement(s(f"sensor{number}"), s("onPlatform"), s(f"platform{number % PLATFORMS}"))
        if number % 20 == 7:
            yield statement(s(f"sensor{number}"), s("inRepairSince"), f'"2023-11-{number % 14 + 1:02}"^^<{XSD}date>')
    for number in range(1, PLATFORMS):
        yield statement(s(f"platform{number}"), s("partOf"), s(f"platform{number // 4}"))
    for narrow, wide in (("SensorOutput", "Observation"), ("Heartbeat", "Message"), ("Observation", "Message")):
        yield statement(s(narrow), f"<{RDFS}subClassOf>", s(wide))


# -- the university ----------------------------------------------------------------------------------------------------


def u(name: str) -> str:
    return f"<{UNIVERSITY}{name}>"


SUBCLASSES = """
FullProfessor Professor, AssociateProfessor Professor, AssistantProfessor Professor, Chair Professor,
Professor Faculty, Lecturer Faculty, Faculty Employee, Employee Person, Student Person, TeachingAssistant Person,
UndergraduateStudent Student, GraduateStudent Student, ResearchAssistant Student,
GraduateCourse Course, Course Work, Research Work, Department Organization, University Organization,
ResearchGroup Organization, Article Publication, Book Publication, JournalArticle Article, ConferencePaper Article
"""
SUBPROPERTIES = """
headOf worksFor, worksFor memberOf, undergraduateDegreeFrom degreeFrom, mastersDegreeFrom degreeFrom,
doctoralDegreeFrom degreeFrom, advisor knows
"""
DOMAINS = "teacherOf Faculty, takesCourse Student, degreeFrom Person, publicationAuthor Publication, headOf Chair"
RANGES = "teacherOf Course, takesCourse Course, degreeFrom University, publicationAuthor Person, advisor Professor, " \
    "memberOf Organization, subOrganizationOf Organization"  # fmt: skip


def hierarchy() -> Iterator[str]:
    """Yields N-Triples: the classes and properties of `university`."""
    for predicate, pairs in (
        ("subClassOf", SUBCLASSES), ("subPropertyOf", SUBPROPERTIES), ("domain", DOMAINS), ("range", RANGES),
    ):  # fmt: skip
        for pair in pairs.split(","):
            narrow, wide = pair.split()
            yield statement(u(narrow), f"<{RDFS}{predicate}>", u(wide))


def university(size: int) -> Iterator[str]:
    """Yields N-Triples: `size` triples about the people of the departments of a university."""
    for _, triple in zip(range(size), _departments(), strict=False):
        yield triple


def _departments() -> Iterator[str]:
    random = Random(2)
    number = 0
    while True:
        yield from _department(f"department{number}", random)
        number += 1


PROFESSORS = ("FullProfessor", "AssociateProfessor", "AssistantProfessor")


def _department(name: str, random: Random) -> Iterator[str]:
    yield statement(u(name), RDF_TYPE, u("Department"))
    yield statement(u(name), u("subOrganizationOf"), u("university0"))
    professors = [f"{name}.professor{number}" for number in range(20 + below(random, 15))]
    for number, professor in enumerate(professors):
        # One or the other: no fact is both given and derived, so that engines need not agree on what to make of that.
        yield statement(u(professor), u("worksFor" if number else "headOf"), u(name))
        yield from _professor(professor, random)
    for number in range(len(professors) * 10):
        yield from _student(f"{name}.student{number}", name, professors, random)


def _professor(professor: str, random: Random) -> Iterator[str]:
    yield statement(u(professor), RDF_TYPE, u(PROFESSORS[below(random, 3)]))
    yield statement(u(professor), u("name"), f'"{professor}"')
    for degree in ("undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom"):
        yield statement(u(professor), u(degree), u(f"university{below(random, 1000)}"))
    for number in range(2):
        yield statement(u(professor), u("teacherOf"), u(f"{professor}.course{number}"))
    for number in range(5 + below(random, 10)):
        yield statement(u(f"{professor}.paper{number}"), u("publicationAuthor"), u(professor))


def _student(student: str, department: str, professors: list[str], random: Random) -> Iterator[str]:
    graduate = random.random() < 0.2
    yield statement(u(student), RDF_TYPE, u("GraduateStudent" if graduate else "UndergraduateStudent"))
    yield statement(u(student), u("memberOf"), u(department))
    yield statement(u(student), u("name"), f'"{student}"')
    for _ in range(2 + below(random, 3)):
        teacher = professors[below(random, len(professors))]
        yield statement(u(student), u("takesCourse"), u(f"{teacher}.course{below(random, 2)}"))
    if graduate:
        yield statement(u(student), u("undergraduateDegreeFrom"), u(f"university{below(random, 1000)}"))
        yield statement(u(student), u("advisor"), u(professors[below(random, len(professors))]))


# -- closures ----------------------------------------------------------------------------------------------------------


def chain(size: int) -> Iterator[str]:
    """Yields N-Triples: a path of `size` steps, whose closure has size * (size + 1) / 2 pairs."""
    for number in range(size):
        yield statement(u(f"n{number}"), u("partOf"), u(f"n{number + 1}"))


def tree(size: int) -> Iterator[str]:
    """Yields N-Triples: `size` edges of a binary tree, from child to parent."""
    for number in range(1, size + 1):
        yield statement(u(f"n{number}"), u("partOf"), u(f"n{(number - 1) // 2}"))


SIZED: dict[str, Callable[[int], Iterator[str]]] = {
    "sensors": sensors, "university": university, "chain": chain, "tree": tree,
}  # fmt: skip
FIXED: dict[str, Callable[[], Iterator[str]]] = {"platforms": platforms, "hierarchy": hierarchy}


def main(arguments: list[str]) -> None:
    match arguments:
        case [name, size] if name in SIZED:
            lines = SIZED[name](int(size))
        case [name] if name in FIXED:
            lines = FIXED[name]()
        case _:
            sys.exit(f"usage: data {{{'|'.join(SIZED)}}} SIZE, or data {{{'|'.join(FIXED)}}}")
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    main(sys.argv[1:])
