"""A builder of another package has whatever it declares: the command line knows no builder by name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from squall.contracts import BuilderCapabilities
from tests.conftest import Install, Squall

ROOT = Path(__file__).parent.parent

TOY = '''
"""A toy engine."""
import squall
from squall.contracts import BuilderCapabilities, declare_capabilities

SEEN = []

class ToyJob:
    """A job that runs the plan in this process."""

    def __init__(self, plan, options):
        self.job = squall.build(plan, "iterator", options)
        self.watermark = 0

    def run(self, batches, static=()):
        return self.job.run(batches, static)

    def node_metrics(self):
        return self.job.node_metrics()

@declare_capabilities(BuilderCapabilities({capabilities}))
def build(plan, options):
    """Runs a plan as a toy does."""
    SEEN.append(options)
    return ToyJob(plan, options)
'''
RULES = """\
@prefix : <http://example.org/>.
[hot: (?s :reads ?v) greaterThan(?v, 30) -> (?s :is :Hot)]
[seen: (?s :reads ?v) -> (?s :is :Seen)]
"""
READING = '{time} <http://example.org/{sensor}> <http://example.org/reads> "{value}"^^<{xsd}integer> .\n'
XSD = "http://www.w3.org/2001/XMLSchema#"
ALL = ", ".join(f"{name}=True" for name in BuilderCapabilities.__dataclass_fields__)


def readings(*rows: tuple[int, str, int]) -> str:
    return "".join(READING.format(time=time, sensor=sensor, value=value, xsd=XSD) for time, sensor, value in rows)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.jena").write_text(RULES)
    Path("in").mkdir()
    Path("in/1.ntt").write_text(readings((1000, "s1", 20), (2000, "s2", 40)))


def install_toy(install: Install, capabilities: str) -> None:
    install("toys", "toy_builder", TOY.replace("{capabilities}", capabilities), builders="toy = toy_builder:build")


def toy(squall: Squall, *arguments: str) -> tuple[int, str, str]:
    return squall("run", "rules.jena", "--builder", "toy", "--source", "in", *arguments)


def test_a_run_with_a_checkpoint_resumes(install: Install, squall: Squall) -> None:
    install_toy(install, ALL)
    arguments = ("--checkpoint", "state", "--checkpoint-interval", "1", "--sink", "out.ntt")
    assert toy(squall, *arguments)[0] == 0
    before = Path("out.ntt").read_text()
    assert before.count("Hot") == 1
    Path("in/2.ntt").write_text(readings((3000, "s2", 41), (4000, "s3", 50)))
    code, _, err = toy(squall, *arguments)
    assert code == 0
    assert err.startswith("4 statements read, 2 outputs")
    after = Path("out.ntt").read_text().removeprefix(before)
    assert ("s3" in after, "s1" in after, "s2> <http://example.org/is> <http://example.org/Hot" in after) == (
        True, False, False
    )  # fmt: skip


def test_it_saves_the_state_of_a_sink_that_cannot_retract(install: Install, squall: Squall) -> None:
    """Such a sink gets outputs only when they are in a checkpoint, if the builder saves the sink's state."""
    for declared, kind in ((ALL, "Outbox"), ("checkpoints=True", "NoneType")):
        install_toy(install, declared)
        folder = f"state-{kind}"
        assert toy(squall, "--checkpoint", folder, "--sink", "-?format=ndjson")[0] == 0
        import toy_builder  # type: ignore[import-not-found]

        assert type(toy_builder.SEEN[-1].sink).__name__ == kind
        for path in sorted(Path(folder).rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        uninstall()


def uninstall() -> None:
    import shutil
    import sys

    shutil.rmtree(next(Path(path) for path in sys.path if Path(path, "toy_builder.py").exists()))
    sys.modules.pop("toy_builder")


def test_it_has_the_wall_clock(install: Install, squall: Squall) -> None:
    install_toy(install, ALL)
    Path("now.nt").write_text("<urn:s> <http://example.org/reads> <urn:v> .\n")
    code, out, _ = squall(
        "run", "rules.jena", "--builder", "toy", "--source", "now.nt", "--clock", "wall", "--timed"
    )  # fmt: skip
    assert code == 0
    assert int(out.split()[0]) > 1_700_000_000_000


def test_it_collects_statistics_and_measures_nodes(install: Install, squall: Squall) -> None:
    install_toy(install, ALL)
    assert toy(squall, "--collect-statistics", "counts.json", "--profile-nodes", "metrics.json")[0] == 0
    assert json.loads(Path("counts.json").read_text())
    code, out, _ = squall("explain", "rules.jena", "--source", "in", "--node-metrics", "metrics.json")
    assert (code, "2 rows" in out) == (0, True)


def test_it_gets_settings_batches_and_removed_rules(install: Install, squall: Squall) -> None:
    install_toy(install, ALL)
    code, _, err = toy(squall, "--conf", "toy.size=3", "--batch", "--checkpoint", "state", "--allow-removed-rules")
    assert code == 2
    assert "the builder `iterator` has no" in err  # of which the toy is made
    import toy_builder

    (options,) = toy_builder.SEEN
    assert (options.conf, options.run_as_one_batch) == ((("toy.size", "3"),), True)
    assert (options.allow_removed_rules, options.checkpoint) == (True, Path("state"))


REFUSED = {
    "--checkpoint state": "keeps no checkpoint",
    "--checkpoint state --checkpoint-interval 5": "keeps no checkpoint",
    "--batch": "has no batches",
    "--conf toy.size=3": "has no setting `toy.size`",
    "--profile-nodes metrics.json": "does not measure nodes",
    "--collect-statistics counts.json": "does not collect statistics",
    "--clock wall": "does not process events as they arrive",
    "--sink out/?format=parquet": "writes no folder",
}


@pytest.mark.parametrize("options", REFUSED)
def test_what_it_does_not_declare_is_refused(options: str, install: Install, squall: Squall) -> None:
    install_toy(install, "")
    code, out, err = toy(squall, *options.split())
    assert (code, out) == (2, "")
    assert f"the builder `toy`{':' if 'arrive' in err else ''} {REFUSED[options]}" in err.replace("it does", "does")
    assert "`squall list builders`" in err
    assert {path.name for path in Path().iterdir()} == {"rules.jena", "in", "toys"}


def test_its_capabilities_are_listed(install: Install, squall: Squall) -> None:
    install_toy(install, "checkpoints=True, wall_clock=True")
    rows = [line.split("\t") for line in squall("list", "builders")[1].splitlines()]
    assert ["toy", "toys 1.0", "checkpoints, wall clock", "Runs a plan as a toy does."] in rows


def test_the_command_line_names_no_builder() -> None:
    names = re.compile(r"""["'](iterator|spark|beam)["']""")
    matches = [
        f"{path.name}: {match[0]}"
        for path in sorted((ROOT / "squall" / "cli").glob("*.py"))
        for match in names.finditer(path.read_text(encoding="utf-8"))
    ]
    assert matches == ['options.py: "iterator"']  # the default
