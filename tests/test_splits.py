"""Files that workers read split by split give the same events as when they are read as a whole."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pytest

from squall.builders.distributed.io.parsing import Document, Parsed
from squall.builders.distributed.io.splits import BLOCK_BYTES, Split, pack_splits, splits_of, splits_parser
from squall.errors import BuilderError
from squall.rdf import ALWAYS

P = "<http://example.org/p>"
LINES = [f"{time} <http://example.org/s{time}> {P} <http://example.org/o> ." for time in range(30)]


def read(path: Path, shared: Sequence[Sequence[Split]], block_bytes: int = BLOCK_BYTES) -> list[Parsed]:
    batch = pyarrow.RecordBatch.from_pydict({"id": list(range(len(shared)))})
    return list(splits_parser((Document(str(path)),), shared, block_bytes)([batch], None, ALWAYS))


def times(found: Sequence[Parsed]) -> list[int]:
    return [event.time for item in found for event in item.events for _ in event.facts]


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("block", [1, 40, 1000, 1 << 20])
def test_wherever_a_file_is_cut_each_line_is_read_once(tmp_path: Path, end: str, block: int) -> None:
    path = tmp_path / "a.ntt"
    path.write_bytes(((end if end.strip("\n") else "\n").join(LINES) + end).encode())
    size = path.stat().st_size
    length = len(LINES[0]) + len(end or "\n")
    for most in (1, 7, length - 1, length, length + 1, 3 * length, size - 1, size, size + 1):
        events = read(path, [[part] for part in splits_of(0, str(path), size, most)], block)
        assert times(events) == list(range(30)), most
        assert sum(item.statements for item in events) == 30
        assert not any(item.lost for item in events)


def test_malformed_lines_are_reported_with_their_position_in_the_split(tmp_path: Path) -> None:
    path = tmp_path / "a.ntt"
    text = "\n".join([*LINES[:5], "broken", *LINES[5:9], "broken", LINES[9]])
    path.write_text(text)
    middle = text.index(LINES[7]) + 3
    events = read(path, [[(0, str(path), 0, middle), (0, str(path), middle, -1)]], block_bytes=100)
    assert [(dead_letters.block, dead_letters.line) for item in events for dead_letters in item.lost] == [
        (0, 6),
        (middle, 2),
    ]
    assert text[:middle].count("\n") + 1 + 2 == 11, "how the driver finds the line's number"
    assert times(events) == list(range(10))


def test_a_compressed_file_is_one_part(tmp_path: Path) -> None:
    path = tmp_path / "a.ntt.gz"
    path.write_bytes(gzip.compress("\n".join(LINES).encode()))
    (share,) = pack_splits([(0, str(path), path.stat().st_size)], tasks=4, least=1, most=10)
    assert times(read(path, [share])) == list(range(30))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BuilderError, match=r"a\.ntt\.gz` cannot be read"):
        read(path, [share])


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BuilderError, match="cannot be read"):
        read(tmp_path / "a.ntt", [[(0, str(tmp_path / "a.ntt"), 0, -1)]])


def test_files_are_shared_out() -> None:
    assert pack_splits([(0, "a", 100)], tasks=2, least=1, most=1000) == [[(0, "a", 0, 50)], [(0, "a", 50, -1)]]
    assert pack_splits([(0, "a", 100)], tasks=2, least=1, most=40) == [
        [(0, "a", 0, 40)], [(0, "a", 40, 80)], [(0, "a", 80, -1)],
    ]  # fmt: skip
    assert pack_splits([(0, "a", 30), (0, "b", 30)], tasks=8, least=40, most=400) == [
        [(0, "a", 0, -1)],
        [(0, "b", 0, -1)],
    ]
    many = pack_splits([(1, f"f{number}", 10) for number in range(100)], tasks=2, least=4, most=1000)
    assert [len(share) for share in many] == [50, 50], "small files go together"
    assert pack_splits([], tasks=2, least=1, most=10) == [[]], "somebody has to say that there is nothing"
