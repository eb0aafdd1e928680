"""Apache Jena 2.10, as it comes with owlready2: its rule engine (RETE), fed with every added and removed triple."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from tests.bench.works import Answer, Evaluate, Rule, Task

SOURCE = Path(__file__).with_name("Jena.java")
COMPILED = Path(__file__).parents[3] / ".cache" / "bench"


def prepare(task: Task) -> Evaluate:
    program = task.files.program
    if task.work.kind == "many":
        program = program.with_suffix(".selective")
        program.write_text("".join(selective(rule).jena() for rule in task.work.rules))
    how = "events" if task.work.fed == "events" else "window" if task.work.window else "fixpoint"
    return start(task, "rete", how, program)


def selective(rule: Rule) -> Rule:
    """Returns the rule with its distinctive pattern first: Jena joins in the order as written, and takes many times as
    long with the pattern at the end."""
    return replace(rule, body=(rule.body[-1], *rule.body[:-1]))


def start(task: Task, engine: str, how: str, program: Path) -> Evaluate:
    """Starts a JVM that has loaded the task and is warm.

    It measures itself. All its CPU time counts, including its compiler and its garbage collector.
    """
    files, work = task.files, task.work
    sizes = [str(work.window), str(task.slide), str(task.warm)]
    command = ["java", "-cp", classes(), "Jena", engine, how, *map(str, (program, files.plain, files.static))]
    java = subprocess.Popen(
        [*command, *sizes, str(files.out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert java.stdout
    message = java.stdout.readline()
    if message != "ready\n":
        raise RuntimeError(f"Jena ended with exit code {java.wait()}")

    def evaluate() -> Answer:
        wall, cpu = (int(part) / 1e9 for part in java.communicate("go\n")[0].split())
        latencies = Path(f"{files.out}.latencies").read_text().split()
        return Answer(files.out.read_text().splitlines(), wall, cpu, tuple(int(latency) / 1e9 for latency in latencies))

    return evaluate


def classes() -> str:
    """Returns the class path: our class, which is compiled when its source is newer, and Jena's archives."""
    result = find_spec("owlready2")
    assert result
    assert result.origin
    jars = f"{Path(result.origin).parent / 'pellet'}/*"
    value = COMPILED / "Jena.class"
    if not value.exists() or value.stat().st_mtime < SOURCE.stat().st_mtime:
        COMPILED.mkdir(parents=True, exist_ok=True)
        command = ["javac", "-nowarn", "-cp", jars, "-d", str(COMPILED), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True, text=True)
    return f"{COMPILED}:{jars}"
