"""Messages of the command line: verbosity, colour, progress, and completion by shells."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from squall.cli import command
from squall.wording import counted
from tests.conftest import Install, Squall

ROOT = Path(__file__).parent.parent
RULES = "@prefix : <http://example.org/>.\n[r: (?x :p ?y) -> (?y :q ?x)]\n"
BROKEN = "[r: (?a ?b -> (?a ?b ?c)]"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.jena").write_text(RULES)
    Path("broken.jena").write_text(BROKEN)
    Path("data.nt").write_text("<urn:a> <http://example.org/p> <urn:b> .\n")
    Path("dirty.nt").write_text("<urn:a> <http://example.org/p> <urn:b> .\nnonsense\n")


def on_terminal(*arguments: str, **variables: str) -> str:
    """Runs the command with a terminal as standard error, and returns what it writes there."""
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= {"PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100", **variables}
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "squall", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=follower, env=environment):
        os.close(follower)
        chunks = []
        while True:
            try:
                chunk = os.read(leader, 10_000)
            except OSError:
                break
            if not chunk:
                break
            chunks.append(chunk)
    os.close(leader)
    return b"".join(chunks).decode().replace("\r\n", "\n")


def test_run_and_build_are_the_same_command(squall: Squall) -> None:
    ran, built = (squall(name, "rules.jena", "--source", "data.nt") for name in ("run", "build"))
    assert ran[:2] == built[:2] == (0, "<urn:b> <http://example.org/q> <urn:a> .\n")


def test_quiet_leaves_out_the_summary(squall: Squall) -> None:
    assert squall("run", "-q", "rules.jena", "--source", "data.nt") == (
        0, "<urn:b> <http://example.org/q> <urn:a> .\n", ""
    )  # fmt: skip
    code, _, err = squall("check", "--quiet", "rules.jena")
    assert (code, err) == (0, "")


def test_quiet_says_what_was_lost_nevertheless(squall: Squall) -> None:
    code, _, err = squall("run", "--quiet", "rules.jena", "--source", "dirty.nt")
    assert code == 0
    reason = "line 2: The subject of a triple must be an IRI or a blank node"
    drop = "dead letters are dropped; --dead-letters FILE keeps them"
    assert err == f"  1 malformed in dirty.nt; {reason}\n  {drop}\n"


def test_quiet_prints_errors_and_warnings(squall: Squall) -> None:
    assert squall("run", "-q", "broken.jena")[2].startswith("broken.jena:1:")
    Path("missing.rq").write_text("SELECT ?missing { ?s ?p ?o }")
    quiet, spoken = (squall("run", *option, "missing.rq", "--source", "data.nt")[2] for option in (("-q",), ()))
    assert "translation warning: " in quiet
    assert spoken.startswith(f"{quiet}1 statement read, ")


def test_verbose_says_what_happens(squall: Squall) -> None:
    code, _, err = squall("run", "-v", "rules.jena", "--source", "data.nt", "--checkpoint", "state")
    assert code == 0
    lines = err.splitlines()
    assert lines[0].startswith("compiled `rules.jena`: 1 rule, ")
    assert "source `data.nt`: bounded" in lines
    assert any(line.startswith("planned by `rete`: ") for line in lines)
    assert "begins the checkpoint `state`" in lines
    again = squall("run", "-v", "rules.jena", "--source", "data.nt", "--checkpoint", "state")[2]
    assert "resumes from the checkpoint `state`" in again


def test_verbose_prints_the_traceback_of_a_cause(install: Install, squall: Squall) -> None:
    install("faulty", "faulty_planner", "def f(): raise KeyError('no')\nf()", planners="faulty = faulty_planner:plan")
    for option, is_shown in (("-v", True), ("--no-progress", False)):
        code, _, err = squall("run", "rules.jena", "--planner", "faulty", option)
        assert code == 2
        assert "the planner `faulty` of `faulty 1.0` cannot be loaded: KeyError: 'no'" in err
        assert ("Traceback (most recent call last)" in err and "def f()" in err) is is_shown


def test_quiet_and_verbose_exclude_each_other(squall: Squall) -> None:
    code, out, err = squall("run", "-q", "-v", "rules.jena")
    assert (code, out) == (2, "")
    assert err == "usage error: `--quiet` and `--verbose` exclude each other\n"


def test_messages_have_colour_on_a_terminal() -> None:
    text = on_terminal("run", "broken.jena")
    assert "\x1b[31m\x1b[1msyntax error\x1b[0m: " in text
    assert "\x1b[31m\x1b[1m" in next(line for line in text.splitlines() if "^" in line)


@pytest.mark.more
@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_can_be_switched_off(variables: dict[str, str]) -> None:
    text = on_terminal("run", "broken.jena", **variables)
    assert "syntax error: " in text
    assert "\x1b[" not in text


@pytest.mark.more
def test_an_empty_no_color_means_colour() -> None:
    assert "\x1b[31m" in on_terminal("run", "broken.jena", NO_COLOR="")


def test_there_is_no_colour_without_a_terminal(squall: Squall) -> None:
    assert "\x1b[" not in squall("run", "broken.jena")[2]


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 outputs"), (1, "1 output"), (2, "2 outputs"), (1000, "1,000 outputs")]
)
def test_counts_have_the_right_plural(count: int, text: str) -> None:
    assert counted(count, "output") == text
    assert counted(count, "entry", "entries").endswith("entry" if count == 1 else "entries")


def test_the_summary_counts_one_thing_as_one(squall: Squall) -> None:
    assert squall("run", "rules.jena", "--source", "data.nt")[2].startswith("1 statement read, 1 output, ")


def complete(*words: str) -> list[str]:
    """Returns the candidates that a shell gets for the last word, as type and value."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT), "_SQUALL_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("squall", *words)), "COMP_CWORD": str(len(words)),
    }  # fmt: skip
    command = [sys.executable, "-c", "import sys; sys.argv = ['squall']; from squall.cli import main; main()"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout.split("\n")[:-1]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        (("ex",), {"plain,explain"}),
        (("r",), {"plain,run"}),
        (("run", "--planner", ""), {"plain,greedy", "plain,rete"}),
        (("run", "--builder", "s"), {"plain,spark"}),
        (("explain", "--builder", "i"), {"plain,iterator"}),
        (("run", "--rules", "rdfs"), {"plain,rdfs", "plain,rdfs-axioms"}),
        (("run", "--profile", "c"), {"plain,csparql", "plain,cqels"}),
        (("run", "--lexer", "rif"), {"plain,rif", "plain,rifps"}),
        (("run", "--format", "nd"), {"plain,ndjson", "plain,ndjson-values", "plain,ndjson-evaluations"}),
        (("run", "--clock", ""), {"plain,event", "plain,wall"}),
        (("run", "ru"), {"file,ru"}),
        (("run", "--source", "k"), {"file,k", "plain,kafka:"}),
        (("run", "--sink", "mq"), {"file,mq", "plain,mqtt:", "plain,mqtts:"}),
        (("run", "--allow"), {"plain,--allow-removed-rules"}),
        (("list", "la"), {"plain,languages"}),
        (("completion", ""), {"plain,bash", "plain,zsh", "plain,fish"}),
    ],
)
def test_a_shell_completes(words: tuple[str, ...], candidates: set[str]) -> None:
    assert set(complete(*words)) == candidates


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, squall: Squall) -> None:
    code, out, err = squall("completion", shell)
    assert (code, err) == (0, "")
    assert "_SQUALL_COMPLETE" in out


@pytest.mark.more
def test_the_script_works_in_bash(squall: Squall) -> None:
    Path("complete.bash").write_text(squall("completion", "bash")[1])
    script = (
        "source complete.bash; COMP_WORDS=(squall run --planner r); COMP_CWORD=3; "
        "_squall_completion squall; echo ${COMPREPLY[@]}"
    )
    folder = Path("bin")
    folder.mkdir()
    program = folder / "squall"
    program.write_text(f"#!{sys.executable}\nfrom squall.cli import main\nmain()\n")
    program.chmod(0o755)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": f"{folder.resolve()}:{os.environ['PATH']}"}
    run = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["rete"]


@pytest.mark.parametrize(
    ("kind", "name", "description"),
    [
        ("languages", "csparql", "C-SPARQL"),
        ("planners", "rete", "node"),
        ("builders", "spark", "PySpark"),
        ("rule-sets", "rdfs", "RDFS"),
        ("profiles", "jena", "noValue"),
        ("formats", "trig", "named graphs"),
        ("sources", "kafka", "topic"),
        ("sinks", "mqtt", "broker"),
        ("checks", "duplicates", "duplicate"),
        ("functions", "http://www.opengis.net/def/function/geosparql/distance", "distance"),
    ],
)
def test_each_kind_is_listed_with_a_description(kind: str, name: str, description: str, squall: Squall) -> None:
    code, out, _ = squall("list", kind)
    rows = {row[0]: row for row in (line.split("\t") for line in out.splitlines())}
    assert code == 0
    assert all(len(row) == 4 and row[3] for row in rows.values())
    assert description.lower() in rows[name][3].lower()


def test_the_languages_have_their_extensions(squall: Squall) -> None:
    rows = {row[0]: row for row in (line.split("\t") for line in squall("list", "languages")[1].splitlines())}
    assert rows["jena"][2] == ".jena .rule .rules"


def test_the_bare_list_has_no_functions(squall: Squall) -> None:
    out = squall("list")[1]
    assert "function\t" not in out
    assert "xpath-functions" not in out


def test_a_missing_extra_is_marked(install: Install, squall: Squall) -> None:
    install("needy", "needy_builder", "import no_such_engine", builders="needy = needy_builder:build [engine]")
    with (Path("needy") / "needy-1.0.dist-info" / "METADATA").open("a") as metadata:
        metadata.write("Provides-Extra: engine\nRequires-Dist: no-such-engine; extra == 'engine'\n")
    for kind in ((), ("builders",)):
        assert "needy\tneedy 1.0\tneeds needy[engine]\t" in squall("list", *kind)[1]


def test_a_broken_plugin_is_a_warning_that_names_its_package(install: Install) -> None:
    install("broken", "broken_functions", "FUNCTIONS = (x,)", functions="broken = broken_functions:FUNCTIONS")
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{Path('broken').resolve()}"}
    Path("rules.jena").write_text(RULES.replace("->", "notEqual(?x, ?y) ->"))
    command = [sys.executable, "-m", "squall", "run", "rules.jena", "--source", "data.nt"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert run.stdout == "<urn:b> <http://example.org/q> <urn:a> .\n"
    message = "plug-in warning: the function `broken` of `broken 1.0` cannot be loaded: NameError: name 'x' is not"
    assert run.stderr.startswith(message)


@pytest.mark.fault("P8")
@pytest.mark.parametrize(
    ("text", "warns"),
    [("(?x ?p ?y) -> (?y ?p ?x) .", True), ("(?x ?p ?y) -> (?y ?p ?x) .\n-> (rdf:type rdf:type rdfs:Class) .", False)],
)
def test_a_run_without_any_source_says_so(text: str, warns: bool, squall: Squall) -> None:
    """P8."""
    Path("rules.jena").write_text(text)
    assert ("source warning: no source is given" in squall("run", "rules.jena")[2]) == warns


@pytest.mark.fault("P8")
@pytest.mark.parametrize(("text", "warns"), [("ASK { ?s ?p ?o }", True), ("ASK {}", False)])
def test_a_query_without_any_source_says_so(text: str, warns: bool, squall: Squall) -> None:
    """P8."""
    Path("query.rq").write_text(text)
    assert ("no source is given" in squall("run", "query.rq")[2]) == warns


@pytest.mark.parametrize(
    ("query", "warns"),
    [
        ("SELECT ?x { GRAPH <http://e/g> { ?x <http://e/p> ?v } }", True),
        ("SELECT ?x FROM NAMED <http://e/g> { GRAPH <http://e/g> { ?x <http://e/p> ?v } }", False),
        ("SELECT ?x FROM <http://e/g> { ?x <http://e/p> ?v }", False),
        ("SELECT ?x { GRAPH <http://e/other> { ?x <http://e/p> ?v } }", False),
    ],
)
def test_a_document_that_no_program_names(
    query: str, warns: bool, squall: Squall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("query.rq").write_text(query)
    Path("g.nt").write_text("<http://e/a> <http://e/p> '1' .\n".replace("'", '"'))
    code, _, err = squall("run", "query.rq", "--graph", "http://e/g=g.nt", "--source", "g.nt")
    assert code == 0
    assert ("document warning: no program names <http://e/g>, so `GRAPH` has nothing of `g.nt`" in err) == warns


@pytest.mark.parametrize("name", ["run", "check", "explain", "update"])
def test_the_page_of_the_command_line_has_every_option(name: str) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    section = page.partition(f"## squall {name}\n")[2].partition("\n## ")[0]
    options = [option for parameter in command.commands[name].params for option in parameter.opts if "--" in option]
    assert [option for option in options if option not in section] == []
