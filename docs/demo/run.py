"""The demo: one program over 100,000 triples, in process and on Spark, and a check that both give the same set.

python docs/demo/run.py [TRIPLES]
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PROGRAM = "docs/demo/platforms.jena"
WORK = Path(".cache/demo")
BUILDERS = ("iterator", "spark")


def main(size: int) -> int:
    (ROOT / WORK).mkdir(parents=True, exist_ok=True)
    title(f"A stream of {size:,} triples from 1,000 sensors, and what is known about them beforehand")
    generate("sensors.ntt", "sensors", str(size))
    generate("platforms.nt", "platforms")
    title("The program")
    print((ROOT / PROGRAM).read_text())
    title("Its plan")
    squall("explain", PROGRAM)
    for builder in BUILDERS:
        title(f"In {builder}")
        sources = ("--source", f"{WORK}/sensors.ntt", "--static", f"{WORK}/platforms.nt")
        squall("build", PROGRAM, "--builder", builder, *sources, "--sink", f"{WORK}/{builder}.nt")
    title("The answers")
    return compare(*(facts(builder) for builder in BUILDERS))


def title(text: str) -> None:
    print(f"\n== {text}\n", flush=True)


def run(command: list[str], display: str, **options: object) -> None:
    """Runs a command and prints how long it took. Ends the demo with the command's exit code if it fails."""
    print(f"$ {display}", flush=True)
    start = time.perf_counter()
    process = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, **options)  # type: ignore[call-overload]
    if process.returncode:
        sys.exit(process.returncode)
    print(f"({time.perf_counter() - start:.1f} s)", flush=True)


def squall(*arguments: str) -> None:
    run(["squall", *arguments], f"squall {' '.join(arguments)}")


def generate(file: str, *arguments: str) -> None:
    with open(ROOT / WORK / file, "w") as out:
        run(
            ["tests.bench.data", *arguments],
            f"python -m tests.bench.data {' '.join(arguments)} > {WORK}/{file}",
            stdout=out,
        )


def facts(builder: str) -> list[str]:
    return sorted((ROOT / WORK / f"{builder}.nt").read_text().splitlines())


def compare(left: list[str], right: list[str]) -> int:
    """Returns 0 if both are the same non-empty set, each fact once; else prints some differences and returns 1."""
    if left == right and left and len(set(left)) == len(left):
        print(f"The same {len(left):,} facts from {' and '.join(BUILDERS)}. For instance:")
        print("\n".join(f"  {fact}" for fact in left[:: len(left) // 5]))
        return 0
    print(f"{len(left):,} facts from {BUILDERS[0]} and {len(right):,} from {BUILDERS[1]}: THEY DIFFER")
    for fact in sorted(set(left) ^ set(right))[:10]:
        print(f"  only in one: {fact}")
    return 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
