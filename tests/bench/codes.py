"""Whether integer codes of classes pay beside their terms, in files and in exchanges.

    python -m tests.bench.codes --size 1000000

The types of `university` are written as Parquet files, with the class of each as a term and as a code of LiteMat, in
the order of the stream and sorted by class. For classes with subclasses the table shows what a scan takes whose filter
is a set of terms, a set of codes, or an interval of codes: the row groups that it has to read, and the median CPU time.
Then it shows the bytes of rows (individual, class) as Arrow and as Parquet, as exchanges have them.

Source: O. Curé, H. Naacke, T. Randriamalala and B. Amann, LiteMat: a scalable, cost-efficient inference encoding scheme
for large RDF graphs (IEEE Big Data 2015).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow
from pyarrow import compute, dataset, parquet

from tests.bench import data
from tests.bench.data import RDF_TYPE, u

ROOT = "Thing"
CLASSES = ("Person", "Employee", "Faculty", "Professor", "Student", "Organization")
"""The classes that are read, from many members to few."""
ROWS_PER_GROUP = 10_000


class Interval(NamedTuple):
    """The codes of a class and its subclasses, from `begin` on, up to `end` (exclusive). `begin` is its own code."""

    begin: int
    end: int


def encode(subclasses: Mapping[str, Sequence[str]], root: str = ROOT) -> dict[str, Interval]:
    """Returns the codes of the classes of a tree.

    The root is ``1``. The n children of a class are numbered from 1, in as many bits as n + 1 numbers take, which are
    appended to its own code. All codes are then filled with zeros to the length of the longest.
    """
    bits: dict[str, str] = {}

    def number(name: str, code: str) -> None:
        bits[name] = code
        children = subclasses.get(name, ())
        width = len(children).bit_length()
        for position, child in enumerate(children, 1):
            number(child, f"{code}{position:0{width}b}")

    number(root, "1")
    length = max(map(len, bits.values()))
    return {
        name: Interval(int(code, 2) << length - len(code), int(code, 2) + 1 << length - len(code))
        for name, code in bits.items()
    }


def hierarchy() -> dict[str, list[str]]:
    """Returns the subclasses of each class of `university`, by their names. A class has its first superclass."""
    pairs = [pair.split() for pair in data.SUBCLASSES.split(",")]
    subclasses: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for name, _ in pairs):
        subclasses.setdefault(next(wide for narrow, wide in pairs if narrow == name), []).append(name)
    below = {name for names in subclasses.values() for name in names}
    subclasses[ROOT] = [name for name in subclasses if name not in below]
    return subclasses


def types(size: int, codes: Mapping[str, Interval]) -> pyarrow.Table:
    """Returns the types in `size` triples of the stream: the individual, its class, and the code of that."""
    begins = {u(name): interval.begin for name, interval in codes.items()}
    cells = (line.split() for line in data.university(size))
    rows = [(subject, object) for subject, predicate, object, _ in cells if predicate == RDF_TYPE and object in begins]
    individuals, classes = zip(*rows, strict=True)
    numbers = pyarrow.array(map(begins.__getitem__, classes), pyarrow.int32())
    return pyarrow.table({"individual": individuals, "class": classes, "code": numbers})


def read(path: Path, condition: compute.Expression, repetitions: int) -> tuple[int, int, float]:
    """Returns how many row groups and rows a scan reads, and its median CPU time (s)."""
    (fragment,) = dataset.dataset(path).get_fragments()
    groups = len(fragment.split_by_row_group(condition))
    seconds = []
    for _ in range(repetitions):
        start = time.process_time()
        table = dataset.dataset(path).scanner(columns=["individual"], filter=condition, use_threads=False).to_table()
        seconds.append(time.process_time() - start)
    return groups, table.num_rows, median(seconds)


def below(name: str, codes: Mapping[str, Interval]) -> list[str]:
    """Returns a class and its subclasses."""
    begin, end = codes[name]
    return [other for other, interval in codes.items() if begin <= interval.begin < end]


def scans(path: Path, codes: Mapping[str, Interval], repetitions: int) -> None:
    """Prints what scans of a file take, by class and filter."""
    term, code = compute.field("class"), compute.field("code")
    for name in CLASSES:
        names, interval = below(name, codes), codes[name]
        conditions = {
            "set of terms": term.isin([u(item) for item in names]),
            "set of codes": code.isin([codes[item].begin for item in names]),
            "interval": (code >= interval.begin) & (code < interval.end),
        }
        for kind, condition in conditions.items():
            groups, rows, seconds = read(path, condition, repetitions)
            print(path.stem, name, kind, groups, rows, f"{1000 * seconds:.1f}", sep="\t")


def size_of(table: pyarrow.Table, write: Callable[[pyarrow.Table, Path], object], path: Path) -> int:
    write(table, path)
    return path.stat().st_size


def write_arrow(table: pyarrow.Table, path: Path) -> None:
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.codes")
    parser.add_argument("--size", type=int, default=1_000_000, help="triples of the stream")
    parser.add_argument("--repeat", type=int, default=5, help="times that each scan is run")
    args = parser.parse_args()
    codes = encode(hierarchy())
    table = types(args.size, codes)
    with TemporaryDirectory() as folder:
        print("order", "class", "filter", "row groups", "rows", "ms of CPU", sep="\t")
        for name, ordered in (("stream", table), ("sorted", table.sort_by("code"))):
            path = Path(folder, f"{name}.parquet")
            parquet.write_table(ordered, path, row_group_size=ROWS_PER_GROUP)
            scans(path, codes, args.repeat)
        print("rows", "Arrow, bytes a row", "Parquet, bytes a row", sep="\t")
        individuals, terms, numbers = (table.select([name]).column(0) for name in table.column_names)
        for kind, column in (
            ("individual", None),
            ("individual, class", terms),
            ("individual, class in a dictionary", terms.dictionary_encode()),
            ("individual, code", numbers),
        ):
            rows = pyarrow.table({"individual": individuals} | ({} if column is None else {"class": column}))
            sizes = (size_of(rows, write, Path(folder, "rows")) for write in (write_arrow, parquet.write_table))
            print(kind, *(f"{size / len(rows):.1f}" for size in sizes), sep="\t")


if __name__ == "__main__":
    main()
