"""What is found out of a text, or of a column, all at once."""

from pathlib import Path

import pyarrow as pa
import pytest

from parallelrun_worker.tables import byte_profile, fixed_dates
from parallelrun_worker.tables.byte_profile import ByteProfile, byte_profile_of
from tests.unit.tables.cutting import Cut


@pytest.mark.parametrize("odd", [b"", b"\r", b"\x1b", b"\\", b"\xff", b"\0"])
def test_bytes_are_found_in_any_block(odd: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_profile, "_BLOCK", 7)
    for place in range(30):
        data = b"a" * place + odd + b"z" * (29 - place)
        expected = ByteProfile(min(data), max(data), b"\r" in data, b"\x1b" in data, b"\\" in data)
        assert byte_profile_of(data) == expected
        assert byte_profile_of(data).is_ascii == data.isascii()
    assert byte_profile_of(b"") == ByteProfile(255, 0, False, False, False)


def test_whole_numbers_of_one_length_are_those_that_python_reads() -> None:
    for words in (["0", "7"], ["10", "99"], ["9" * 18, "1" + "0" * 17]):
        assert fixed_dates.digits_of(pa.array(words)).tolist() == [*map(int, words)]
        assert fixed_dates.digits_of(pa.array(["1", *words])[1:]).tolist() == [*map(int, words)]


@pytest.mark.parametrize(
    "words",
    [["1", "10"], ["01", "10"], ["-1", "10"], ["1a", "10"], [" 1", "10"], ["9" * 19], ["1", None], ["", ""], []],
)
def test_whole_numbers_in_other_spellings_are_left_to_others(words: list[str | None]) -> None:
    assert fixed_dates.digits_of(pa.array(words, pa.string())) is None


def test_some_texts_of_the_largest_mini_batch_hold_its_memory(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,t\n" + "".join(f"{n},text {n}\n" for n in range(5_000)))
    cut = Cut(tmp_path, ["read_delimited"])
    rows, texts = cut.table._pinned
    assert (rows, texts) == (5_000, [f"text {n}" for n in range(0, 5_000, 1_000)])
    cut.table.read([(str(tmp_path / "a.csv"), 0, 2_000, False, -1)])
    assert cut.table._pinned[1] is texts
