"""Counts the instructions of evaluations, of this checkout beside a commit:

    python -m tests.bench.instructions q3 rdfs --beside 8e808b1e

On a machine that others use, times vary by more than changes of a few per cent; instructions do not. Of each work the
first half and all of the stream are evaluated, each in a process under `valgrind --tool=callgrind`. The difference is
the evaluation of the second half, without imports, planning and construction. Hashes have the seed 0, and addresses are
not randomised (`setarch -R`).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SIZES = {
    "latency": 20_000, "q3-small": 8_000, "q3": 24_000, "q4": 24_000, "q9": 24_000, "many-100": 8_000, "rdfs": 3_000,
    "chain": 100, "tree": 1_000, "owl2rl": 1_500,
}  # fmt: skip
"""The works that are counted, each with its triples: enough for a minute under valgrind."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.bench.instructions", description="Counts instructions.")
    parser.add_argument("work", nargs="*", metavar="WORK", help=f"all of {', '.join(SIZES)} by default")
    parser.add_argument("--beside", metavar="COMMIT", help="a commit to count, too")
    parser.add_argument("--size", type=int, help="triples of the stream")
    parser.add_argument("--halves", type=int, help=argparse.SUPPRESS)
    return parser.parse_args(given)


def evaluate(name: str, size: int, halves: int) -> int:
    """Evaluates one or both halves of a work's stream, with events in memory, and returns the number of outputs."""
    import gc

    import squall
    from squall.rdf import ALWAYS, Event
    from tests.bench import ours
    from tests.bench.works import WORKS, Task

    work = WORKS[name]
    with tempfile.TemporaryDirectory() as folder:
        work.write(Path(folder), size)
        task = Task(work, work.files(Path(folder)), work.slide or 800)
        batches = list(ours.batched(task, columns=True))
        static = [Event(ALWAYS, tuple(map(ours.triple, task.static())))]
        plan = squall.plan(squall.compile(task.files.program, window=ours.window(work)))
        gc.disable()
        return sum(1 for _ in squall.build(plan, "iterator").run(batches[: len(batches) * halves // 2], static))


def count(name: str, size: int, tree: Path) -> int:
    """Returns the instructions for the second half of a work's stream by the code in a folder.

    Raises:
        RuntimeError: The evaluation failed; the message has its output.
    """
    half, whole = (_collected(name, size, halves, tree) for halves in (1, 2))
    return whole - half


def _collected(name: str, size: int, halves: int, tree: Path) -> int:
    command = ["setarch", "-R", "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable]
    child = [str(Path(__file__)), name, "--size", str(size), "--halves", str(halves)]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(tree)}
    process = subprocess.run([*command, "-P", *child], capture_output=True, text=True, env=environment, cwd=tree)
    total = re.search(r"Collected : (\d+)", process.stderr)
    if process.returncode or total is None:
        raise RuntimeError(f"{name} with {tree}: {process.stderr[-2000:]}")
    return int(total[1])


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Yields a folder with the files of a commit, which is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(given)
    if options.halves:
        evaluate(options.work[0], options.size, options.halves)
        os._exit(0)  # at its end, the interpreter would collect what the evaluation has left
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is not installed (Debian: valgrind)")
    sizes = {name: options.size or SIZES.get(name, 3_000) for name in options.work or SIZES}
    if not options.beside:
        for name, size in sizes.items():
            print(f"{name}, {size:,} triples: {count(name, size, ROOT) / 1e6:,.1f} million", flush=True)
        return
    with checkout(options.beside) as tree:
        for name, size in sizes.items():
            before, now = count(name, size, tree), count(name, size, ROOT)
            print(f"{name}, {size:,} triples: {before / 1e6:,.1f} and {now / 1e6:,.1f} million: {now / before:.3f}",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
