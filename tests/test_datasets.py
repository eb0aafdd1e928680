"""Datasets as values, their files, and that equal datasets give equal documents."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squall.errors import SinkError
from squall.rdf import RDF, XSD, Term, Triple, blank, iri, literal
from squall.sparql_update.datasets import WRITABLE_FORMATS, Dataset, encoded, read, writable, write
from squall.testing import isomorphic

ROOT = Path(__file__).parent.parent
A, B, P, G = (iri(f"urn:x:{name}") for name in "abpg")
ONE = Dataset(frozenset({Triple(A, P, B)}), {G: frozenset({Triple(B, P, A)})})


def test_a_data_set_is_a_value() -> None:
    inputs: dict[Term, Any] = {G: {Triple(B, P, A)}}
    result = Dataset(frozenset({Triple(A, P, B)}), inputs)
    assert result == ONE
    assert hash(result) == hash(ONE)
    inputs[G].add(Triple(A, P, A))
    inputs[A] = frozenset()
    assert result == ONE
    assert result != Dataset(ONE.default, {G: frozenset()})
    with pytest.raises(TypeError):
        result.named[A] = frozenset()  # type: ignore[index]


def test_union() -> None:
    other = Dataset(frozenset({Triple(A, P, A)}), {G: frozenset({Triple(A, P, A)}), A: frozenset()})
    assert ONE | other == Dataset(
        frozenset({Triple(A, P, B), Triple(A, P, A)}),
        {G: frozenset({Triple(B, P, A), Triple(A, P, A)}), A: frozenset()},
    )
    assert ONE | Dataset() == ONE == Dataset() | ONE


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\ufffe\uffff"), max_size=4)
nodes = st.sampled_from([A, B, blank("n"), blank("m")])
literals = st.one_of(
    texts.map(literal),
    texts.map(lambda text: literal(text, language="de")),
    st.sampled_from(["1", "01", "x"]).map(lambda text: literal(text, XSD + "integer")),
)
triples = st.builds(Triple, nodes, st.sampled_from([P, iri(RDF + "type")]), nodes | literals)
graphs = st.frozensets(triples, max_size=3)


@given(graphs, st.dictionaries(st.sampled_from([A, G]), graphs.filter(bool)), st.sampled_from(["nq", "trig", "jsonld"]))
def test_a_dataset_survives_a_round_trip(
    default: frozenset[Triple], named: dict[Term, frozenset[Triple]], format: str
) -> None:
    import tempfile

    value = Dataset(default, named)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/x.{format}"
        write(encoded(value, writable(path)), path)
        result = read(path)
    assert isomorphic(result.quads(), value.quads())


@pytest.mark.more
@pytest.mark.sampled(3)
@pytest.mark.parametrize("format", WRITABLE_FORMATS)
def test_a_document_is_the_same_each_time(format: str) -> None:
    code = (
        "from squall.sparql_update.datasets import *; from squall.rdf import *; import sys\n"
        "facts = frozenset(Triple(iri(f'urn:{s}'), iri('urn:p'), iri(f'urn:{o}')) for s in range(9) for o in 'ab')\n"
        f"sys.stdout.buffer.write(encoded(Dataset(facts), writable('-', '{format}')))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    history = {
        run(
            [sys.executable, "-c", code], env=environment | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(history) == 1


@pytest.mark.parametrize("format", ["nt", "ttl"])
def test_formats_of_one_graph(format: str) -> None:
    with pytest.raises(SinkError, match="has no named graphs"):
        encoded(ONE, writable("-", format))
    assert encoded(Dataset(ONE.default, {G: frozenset()}), writable("-", format))


def test_blank_nodes_are_those_of_their_document(tmp_path: Path) -> None:
    item, other = tmp_path / "one.trig", tmp_path / "other.trig"
    item.write_text("_:x <urn:p> _:x . <urn:g> { _:x <urn:p> _:y }")
    other.write_text(item.read_text())
    result = read(str(item))
    ((subject, _, _),) = result.default
    assert subject in {triple.subject for triple in result.named[iri("urn:g")]}
    assert read(str(item)) == result
    assert result.default.isdisjoint(read(str(other)).default)
    assert result.default.isdisjoint(read(str(item), scope="again").default)


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="cannot be written: No such file or directory"):
        write(b"", str(tmp_path / "nowhere" / "x.nq"))


def test_devices_and_links_can_be_written_to(tmp_path: Path) -> None:
    write(b"x", os.devnull)
    link = tmp_path / "link.nq"
    link.symlink_to(tmp_path / "x.nq")
    write(b"x", str(link))
    assert link.is_symlink()
    assert (tmp_path / "x.nq").read_bytes() == b"x"
