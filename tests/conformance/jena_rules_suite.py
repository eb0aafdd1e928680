"""The suite ``jena-rules``: parsing, entailment and built-ins of the Jena rule engines (``rule_engine_cases.json``),
and the manifests of its reasoners."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from squall.errors import BuilderError, SquallError
from squall.lexers.jena import Call, Rule, lexer
from squall.lexers.jena import Pattern as Clause
from squall.model import System, warnings
from squall.rdf import RDF, Event, Term, Triple, blank, iri, literal
from squall.rdf.compounds import compound
from squall.translators.jena.terms import FUNCTORS
from tests.conformance import Case, KnownBad, LeftOut, Stages, entries, jena_reasoners, refusal
from tests.conformance.programs import answer, compiled, model, same

Entry = dict[str, Any]
Pattern = tuple[Term | None, ...]

BROKEN = "<__main__.Obj object"
"""The text that the tool which extracted the cases printed by mistake in an expected text."""


def cases(folder: Path) -> Iterator[Case]:
    """Yields the cases of the file, in its order, and then those of the manifests."""
    for entry in entries(folder / "rule_engine_cases.json"):
        yield Case(entry["id"], partial(_run, entry))
    yield from jena_reasoners.cases(folder)
    for path in sorted(folder.rglob("*.rules")):
        yield Case(f"reads {path.relative_to(folder)}", partial(_reads, path))


_REMOVES = re.compile(r"\b(?:remove|drop)\(")


def _run(entry: Entry, stages: Stages) -> None:
    run = KINDS.get(entry["kind"])
    if run is None:
        raise LeftOut(REASONS.get(entry["kind"], f"the kind `{entry['kind']}` is not known"))
    try:
        run(entry, stages)
    except (AssertionError, BuilderError) as error:
        if _REMOVES.search(entry.get("rules") or ""):
            raise LeftOut("rules that remove facts act all at once here, not one by one") from error
        raise


# Files


WRONG = {
    "cannot be read": "it includes a file that is not there",
    "there is no built-in": "Jena does not register its built-ins",
    "there is no wildcard": "it has wildcards, which Jena's own parser refuses",
    "codec can't decode": "it is no UTF-8",
}
"""The messages for files that Jena does not read, or not as they are in the corpus, with the reason."""
INCLUDES = "@include <file:testing/reasoners/"
"""The way in which a file names another one from the root of Jena's repository."""


def _reads(path: Path, stages: Stages) -> None:
    """Checks that a file is read, that its printed tree is read as the same tree, and that it is translated. Only the
    places of included files are changed before."""
    try:
        _read_and_translate(path)
    except (SquallError, UnicodeDecodeError) as error:
        reasons = [reason for phrase, reason in WRONG.items() if phrase in str(error)]
        if reasons:
            raise KnownBad(reasons[0]) from error
        raise


def _read_and_translate(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace(INCLUDES, "@include <file:")
    tree = lexer(text, str(path))
    printed = lexer.written(tree)
    assert lexer(printed, path.name) == tree, "its tree is read as another one"
    compiled(printed, "jena", jena_reasoners.PROFILE)


# Entailment


def _entail(entry: Entry, stages: Stages) -> None:
    expected = [_triple(triple) for triple in entry["expected"]]
    expectation = _pattern(entry["query"])
    actual = _matching(entry, expectation, stages)
    _check_goals(entry, expectation)
    are_same = same(actual, expected, by_value='"compare": "value"' in json.dumps(entry["expected"]))
    _check_heads(entry, are_same)
    assert are_same, _difference(actual, expected)


def _check_heads(entry: Entry, is_right: bool) -> None:
    """Leaves a case out that fails and has a head with a variable that only a goal of a backward chainer would bind."""
    if not is_right and (outputs := warnings(_compiled(entry))):
        raise LeftOut(", ".join(item.message for item in outputs))


def _check_goals(entry: Entry, wanted: Pattern) -> None:
    """Skips a case that tests whether the query has bound a variable, before a pattern binds it: with all rules run
    forward, every solution of the patterns binds it."""
    for rule in lexer(entry["rules"], entry["id"]).rules:
        if rule.backward and any(_asks_goal(rule, place, wanted) for place in range(len(rule.body))):
            raise LeftOut("`bound` or `unbound` asks what the goal of a backward chainer has bound")


def _asks_goal(rule: Rule, place: int, wanted: Pattern) -> bool:
    """Returns whether the clause tests if a variable is bound that the query leaves open and only later patterns
    bind."""
    call = rule.body[place]
    if not isinstance(call, Call) or call.name not in ("bound", "unbound"):
        return False
    slots = [pair for head in rule.head if isinstance(head, Clause) for pair in zip(head.nodes, wanted, strict=True)]
    request = {node.value for node in call.nodes} & {node.value for node, slot in slots if slot is None}
    return bool(request & _values(rule.body[place + 1 :]) - _values(rule.body[:place]))


def _values(clauses: Sequence[object]) -> set[object]:
    return {node.value for clause in clauses if isinstance(clause, Clause | Call) for node in clause.nodes}


def _contains(entry: Entry, stages: Stages) -> None:
    result = bool(_matching(entry, _pattern(entry["triple"]), stages))
    assert result is entry["expected"], f"{'found' if result else 'not found'}: {_pattern(entry['triple'])}"


def _count(entry: Entry, stages: Stages) -> None:
    result, expected = _matching(entry, _pattern(entry["query"]), stages), entry["expected_count"]
    _check_heads(entry, len(result) == expected)
    assert len(result) == expected, f"{len(result)}, not {expected}: {result}"


def _skolem_equal(entry: Entry, stages: Stages) -> None:
    values = []
    for side in ("data_left", "data_right"):
        (result,) = _matching({**entry, "data": entry[side]}, _pattern(entry["query"]), stages)
        values.append(result.object)
    assert (values[0] == values[1]) is entry["expected"], f"made {values}"


def _script(entry: Entry, stages: Stages) -> None:
    """Checks that a rule makes one node, and the same node each time, and that the node has the class in the text."""
    nodes = set()
    for _ in range(2):
        (result,) = _matching(entry, (iri("a"), iri("p"), None), stages)
        nodes.add(result.object)
    assert len(nodes) == 1, f"made {nodes}"
    if "rdf:type" in entry["expected_text"]:
        types = _matching(entry, (nodes.pop(), iri(RDF + "type"), None), stages)
        assert [triple.object for triple in types] == [iri("C2")], types


def _compiled(entry: Entry) -> System:
    """Compiles the rules of a case. What its prefix `eg:` stands for is not what Jena has for it."""
    return compiled(f"@prefix eg: <urn:example:test:>\n{entry['rules']}", "jena", jena_reasoners.PROFILE)


def _matching(entry: Entry, wanted: Pattern, stages: Stages) -> list[Triple]:
    """Returns the facts (data, schema and derived ones) that hold in the end and match a pattern."""
    data = tuple(_triple(triple) for triple in entry["data"])
    schema = [_triple(triple) for triple in entry.get("schema") or ()]
    return _fitting(model(_compiled(entry), [Event(0, data)], stages, schema).held, wanted)


def _fitting(held: Iterable[Triple], wanted: Pattern) -> list[Triple]:
    return sorted(fact for fact in held if all(a in (None, b) for a, b in zip(wanted, fact, strict=True)))


def _incremental(entry: Entry, stages: Stages) -> None:
    """Yields what holds after each step of additions and removals."""
    system, events = _compiled(entry), list[Event]()
    if "transitive closure" in entry.get("note", ""):
        raise LeftOut("the reasoner has rules of its own")
    for number, (step, *arguments) in enumerate(entry["steps"]):
        time = 10 * number
        match step:
            case "add":
                events.append(Event(time, (_triple(arguments[0]),)))
            case "remove":
                events.append(Event(time, (), removed=(_triple(arguments[0]),)))
            case "contains" | "deductions_contain":
                result = model(system, events, stages)
                facts = result.held if step == "contains" else result.derived
                assert (_triple(arguments[0]) in facts) is arguments[1], f"step {number}: {facts}"
            case "find":
                found_ones = _fitting(model(system, events, stages).held, _pattern(arguments[0]))
                expected = [_triple(triple) for triple in arguments[1]]
                assert same(found_ones, expected), f"step {number}: {_difference(found_ones, expected)}"
            case _:
                raise AssertionError(f"not a step: {step}")


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
        case {"functor": name, "args": arguments}:
            return compound(iri(FUNCTORS + name), tuple(map(_term, arguments)))
    raise AssertionError(f"not a term: {entry}")


def _difference(came: list[Triple], due: list[Triple]) -> str:
    missing, surplus = sorted(map(str, set(due) - set(came))), sorted(map(str, set(came) - set(due)))
    return f"missing {missing}, surplus {surplus}"


# Built-ins

_COMPARISONS = ("equal", "notEqual", "le", "lessThan", "ge", "greaterThan")


def _builtin_compare(entry: Entry, stages: Stages) -> None:
    rules = [f"[(?x value ?a) (?y value ?b) {name}(?a, ?b) -> (?x {name} ?y)]" for name in _COMPARISONS]
    data = [Triple(iri(name), iri("value"), _term(entry[name])) for name in ("low", "high")]
    actual = answer(compiled("\n".join(rules), "jena"), data, stages)
    expected = {
        Triple(iri(left), iri(name), iri(right))
        for name in _COMPARISONS
        for left, right in _pairs(name, entry["expected"])
    }
    assert actual == expected, _difference(list(actual), list(expected))  # type: ignore[arg-type]


def _pairs(name: str, expected: dict[str, list[list[str]]]) -> set[tuple[str, str]]:
    """Returns the pairs that satisfy a built-in. The cases list those of one order, and leave out those that follow
    from them."""
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
    with refusal():
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
    "incremental": _incremental,
    "script": _script,
    "builtin_compare": _builtin_compare,
    "parse_print": _parse_print,
    "parse_error": _parse_error,
    "rule_equality": _rule_equality,
    "rule_direction": _rule_direction,
}
REASONS = {
    "derivation": "which facts a fact was derived from is not recorded",
}
"""The kinds of cases that are left out, with the reason."""
