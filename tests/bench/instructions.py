"""Counts the instructions of evaluations, of this checkout beside a commit:

    python -m tests.bench.instructions q3 rdfs --beside 8e808b1e

On a machine that others use, times vary by more than changes of a few per cent; instructions do not. Each work is
evaluated in a process under `valgrind --tool=callgrind`, which counts from the middle of the stream on: the evaluation
of the second half, without imports, planning and construction. What has no times is counted as a whole. With
`--construction`, what is counted is a second compilation, planning and construction of the job. Hashes have the seed 0,
and addresses are not randomised (`setarch -R`). Needs Linux on x86-64.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
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
    parser.add_argument("--construction", action="store_true", help="compilation, planning and construction")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(given)


_REQUEST = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3")
"""The machine code of a request to valgrind (its manual, section 3.1), as a function of the request's number and
arguments."""
_START, _STOP = (ord("C") << 24 | ord("T") << 16 | number for number in (4, 5))
"""The numbers of the requests to start and to stop counting (callgrind's manual, section 6.5)."""


def ask_valgrind(number: int) -> None:
    """Sends a request to valgrind, which it runs under; else nothing happens."""
    code = mmap.mmap(-1, len(_REQUEST), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(_REQUEST)
    send = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    send((ctypes.c_long * 6)(number))


def evaluate(name: str, size: int, construction: bool = False) -> int:
    """Evaluates a work's stream, with events in memory, and returns the number of outputs."""
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
        gc.disable()

        def job() -> squall.Job:
            return squall.build(squall.plan(squall.compile(task.files.program, window=ours.window(work))), "iterator")

        def half_counted() -> Iterator[Sequence[Event]]:
            half = len(batches) // 2
            yield from batches[:half]
            ask_valgrind(_START)
            yield from batches[half:]

        counted_job = job()
        if construction:
            ask_valgrind(_START)
            counted_job = job()
            ask_valgrind(_STOP)
        outputs = sum(1 for _ in counted_job.run(batches if construction else half_counted(), static))
        ask_valgrind(_STOP)
        return outputs


def count(name: str, size: int, tree: Path, construction: bool = False) -> int:
    """Returns the instructions for the second half of a work's stream, or for its job, by the code in a folder.

    Raises:
        RuntimeError: The evaluation failed; the message has its output.
    """
    valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null"]
    command = ["setarch", "-R", *valgrind, sys.executable]
    child = [str(Path(__file__)), name, "--size", str(size), "--inside"]
    child += ["--construction"] * construction
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
    if options.inside:
        evaluate(options.work[0], options.size, options.construction)
        os._exit(0)  # at its end, the interpreter would collect what the evaluation has left
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is not installed (Debian: valgrind)")
    sizes = {name: options.size or SIZES.get(name, 3_000) for name in options.work or SIZES}
    if not options.beside:
        for name, size in sizes.items():
            print(
                f"{name}, {size:,} triples: {count(name, size, ROOT, options.construction) / 1e6:,.1f} million",
                flush=True,
            )
        return
    with checkout(options.beside) as tree:
        for name, size in sizes.items():
            before, now = (count(name, size, folder, options.construction) for folder in (tree, ROOT))
            print(f"{name}, {size:,} triples: {before / 1e6:,.1f} and {now / 1e6:,.1f} million: {now / before:.3f}",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
