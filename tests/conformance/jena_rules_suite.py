"""The suite ``jena-rules``: parsing, entailment and built-ins of the Jena rule engines (``rule_engine_cases.json``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from squall.errors import Errors, LexerError
from squall.lexers.jena import Call, Rule, lexer
from squall.lexers.jena import Pattern as Clause
from squall.rdf import Term, Triple, blank, iri, literal
from tests.conformance import Case, LeftOut, Stages
from tests.conformance.programs import answer, compiled, same

Entry = dict[str, Any]
Pattern = tuple[Term | None, ...]

BROKEN = "<__main__.Obj object"
"""In an expected text: what the tool that extracted the cases printed in place of the text."""


def cases(folder: Path) -> Iterator[Case]:
    """The cases of the file, in its order."""
    for entry in json.loads((folder / "rule_engine_cases.json").read_text(encoding="utf-8")):
        yield Case(entry["id"], partial(_run, entry))


def _run(entry: Entry, stages: Stages) -> None:
    run = KINDS.get(entry["kind"])
    if run is None:
        raise LeftOut(REASONS.get(entry["kind"], f"the kind `{entry['kind']}` is not known"))
    run(entry, stages)


# Entailment


def _entail(entry: Entry, stages: Stages) -> None:
    due = [_triple(triple) for triple in entry["expected"]]
    wanted = _pattern(entry["query"])
    came = _matching(entry, wanted, stages)
    _check_goals(entry, wanted)
    assert same(came, due, by_value='"compare": "value"' in json.dumps(entry["expected"])), _difference(came, due)


def _check_goals(entry: Entry, wanted: Pattern) -> None:
    """Leaves a case out that asks whether the query has bound a variable, before a pattern binds it: with all rules run
    forward, every solution of the patterns binds it."""
    for rule in lexer(entry["rules"], entry["id"]).rules:
        if rule.backward and any(_asks_goal(rule, place, wanted) for place in range(len(rule.body))):
            raise LeftOut("`bound` or `unbound` asks what the goal of a backward chainer has bound")


def _asks_goal(rule: Rule, place: int, wanted: Pattern) -> bool:
    """Whether the clause asks if a variable is bound that the query leaves open and only later patterns bind."""
    call = rule.body[place]
    if not isinstance(call, Call) or call.name not in ("bound", "unbound"):
        return False
    slots = [pair for head in rule.head if isinstance(head, Clause) for pair in zip(head.nodes, wanted, strict=True)]
    asked = {node.value for node in call.nodes} & {node.value for node, given in slots if given is None}
    return bool(asked & _values(rule.body[place + 1 :]) - _values(rule.body[:place]))


def _values(clauses: Sequence[object]) -> set[object]:
    return {node.value for clause in clauses if isinstance(clause, Clause | Call) for node in clause.nodes}


def _contains(entry: Entry, stages: Stages) -> None:
    found = bool(_matching(entry, _pattern(entry["triple"]), stages))
    assert found is entry["expected"], f"{'found' if found else 'not found'}: {_pattern(entry['triple'])}"


def _count(entry: Entry, stages: Stages) -> None:
    found = _matching(entry, _pattern(entry["query"]), stages)
    assert len(found) == entry["expected_count"], f"{len(found)}, not {entry['expected_count']}: {found}"


def _skolem_equal(entry: Entry, stages: Stages) -> None:
    values = []
    for side in ("data_left", "data_right"):
        (found,) = _matching({**entry, "data": entry[side]}, _pattern(entry["query"]), stages)
        values.append(found.object)
    assert (values[0] == values[1]) is entry["expected"], f"made {values}"


def _matching(entry: Entry, wanted: Pattern, stages: Stages) -> list[Triple]:
    """What holds in the end (data, schema and what follows) and fits a pattern."""
    data = [_triple(triple) for triple in entry["data"]]
    schema = [_triple(triple) for triple in entry.get("schema") or ()]
    derived = answer(compiled(entry["rules"], "jena"), data, stages, schema)
    held = {*data, *schema, *(fact for fact in derived if isinstance(fact, Triple))}
    return sorted(fact for fact in held if all(a in (None, b) for a, b in zip(wanted, fact, strict=True)))


def _pattern(terms: Sequence[Entry | None]) -> Pattern:
    return tuple(None if term is None else _term(term) for term in terms)


def _triple(terms: Sequence[Entry]) -> Triple:
    return Triple(*map(_term, terms))


def _term(entry: Entry) -> Term:
    match entry:
        case {"iri": name}:
            return iri(name)
        case {"bnode": label}:
            return blank(label)
        case {"lit": lexical}:
            return literal(lexical, entry.get("dt"), entry.get("lang"))
        case {"functor": name}:
            raise LeftOut(f"the functor `{name}(...)` in the data is not supported yet")
    raise AssertionError(f"not a term: {entry}")


def _difference(came: list[Triple], due: list[Triple]) -> str:
    missing, surplus = sorted(map(str, set(due) - set(came))), sorted(map(str, set(came) - set(due)))
    return f"missing {missing}, surplus {surplus}"


# Built-ins

_COMPARISONS = ("equal", "notEqual", "le", "lessThan", "ge", "greaterThan")


def _builtin_compare(entry: Entry, stages: Stages) -> None:
    rules = [f"[(?x value ?a) (?y value ?b) {name}(?a, ?b) -> (?x {name} ?y)]" for name in _COMPARISONS]
    data = [Triple(iri(name), iri("value"), _term(entry[name])) for name in ("low", "high")]
    came = answer(compiled("\n".join(rules), "jena"), data, stages)
    due = {
        Triple(iri(left), iri(name), iri(right))
        for name in _COMPARISONS
        for left, right in _pairs(name, entry["expected"])
    }
    assert came == due, _difference(list(came), list(due))  # type: ignore[arg-type]


def _pairs(name: str, expected: dict[str, list[list[str]]]) -> set[tuple[str, str]]:
    """The pairs that satisfy a built-in; the cases list those of one order and leave out what follows from them."""
    listed = {(left, right) for left, right in expected[name]}
    if name in ("lessThan", "greaterThan"):
        return listed
    same_values = {("low", "low"), ("high", "high")}
    return listed | ({(right, left) for left, right in listed} if name == "notEqual" else same_values)


# The language


def _rule(text: str) -> Rule:
    (rule,) = lexer(text, "rule").rules
    return rule


def _parse_print(entry: Entry, stages: Stages) -> None:
    if BROKEN in entry["canonical"]:
        raise LeftOut("the expected text is damaged in the corpus")
    printed = str(_rule(entry["rule"]))
    assert printed == entry["canonical"], f"`{printed}`, not `{entry['canonical']}`"


def _parse_error(entry: Entry, stages: Stages) -> None:
    with pytest.raises((LexerError, Errors)):
        lexer(entry["rule"], entry["id"])


def _rule_equality(entry: Entry, stages: Stages) -> None:
    equal = _rule(entry["left"]).canonical == _rule(entry["right"]).canonical
    assert equal is entry["expected"], f"{equal}: `{entry['left']}` and `{entry['right']}`"


def _rule_direction(entry: Entry, stages: Stages) -> None:
    assert _rule(entry["rule"]).direction == entry["expected"]


KINDS: dict[str, Callable[[Entry, Stages], None]] = {
    "entail": _entail,
    "contains": _contains,
    "count": _count,
    "skolem_equal": _skolem_equal,
    "builtin_compare": _builtin_compare,
    "parse_print": _parse_print,
    "parse_error": _parse_error,
    "rule_equality": _rule_equality,
    "rule_direction": _rule_direction,
}
REASONS = {
    "incremental": "removing a fact from a stream is not supported yet",
    "derivation": "which facts a fact was derived from is not recorded",
    "script": "what is expected is prose",
}
"""The kinds that are left out, and why."""
