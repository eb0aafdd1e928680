"""No file that a run writes may be one that it reads, or another one that it writes: opening it would empty it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from squall.cli.written_files import check_written_files
from squall.errors import UsageError
from tests.conftest import Squall


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for name in ("x.nt", "in/y.nt", "rules.jena"):
        Path(name).write_text("")
    os.link("x.nt", "linked.nt")


READ = {"a source": ("s=x.nt?time=1", "in/", "mqtt://host/x.nt"), "a program": (Path("rules.jena"),)}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"the sink": "x.nt"}, "`x.nt` is a source as well as the sink"),
        ({"the sink": "in/../x.nt?format=nt"}, "is a source as well as the sink"),
        ({"the sink": "linked.nt"}, "is a source as well as the sink"),
        ({"the sink": "rules.jena?format=nt"}, "is a program as well as the sink"),
        ({"the sink": None, "the ledger": Path("x.nt")}, "is a source as well as the ledger"),
        ({"the sink": "new.nt", "the ledger": Path("in/../new.nt")}, "is the sink as well as the ledger"),
        ({"the sink": "in/answers-{time}.srj"}, "is the sink, in a folder that is a source"),
        ({"the sink": "in/"}, "is a source as well as the sink"),
    ],
)
def test_a_file_that_is_read_is_not_written(written: Mapping[str, str | Path | None], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_written_files(written, READ)


@pytest.mark.parametrize("places", [("new.nt", "new.ndjson"), ("/dev/null", "/dev/null"), ("tcp://host:1", "host:1")])
def test_other_files_are_written(places: Sequence[str]) -> None:
    check_written_files(dict(zip(("the sink", "the ledger"), places, strict=True)), {**READ, "nothing": ["/dev/null"]})


def test_the_run_checks_the_files_before_it_opens_one(squall: Squall) -> None:
    Path("x.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    Path("rules.jena").write_text("[r: (?a ?p ?b) -> (?b ?p ?a)]")
    for option in ("--dead-letters", "--profile-nodes", "--collect-statistics", "--sink"):
        for file in ("x.nt", "rules.jena"):
            place = f"{file}?format=nt" if option == "--sink" else file
            code, _, message = squall("run", "rules.jena", "--source", "x.nt", option, place)
            assert (code, "as well as" in message) == (2, True)
            assert Path(file).read_text()
