"""Rows of other lengths than the header: they are read as ever, and a warning tells of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tables.test_values import Reader

LONG, SHORT = "long_rows", "short_rows"
QUOTES = "write a quote within quotes twice"
BROKEN = "support_multi_line: true"
MANY = b"1,2\n" * 200


def told_of(folder: Path, content: bytes, form: str = "own", **options: Any) -> list[tuple[str, str, str, int, int]]:
    """Kind, event, remedy, times and line of each warning about lengths."""
    (folder / "a.csv").write_bytes(content)
    reader = Reader(folder, [{"read_delimited": options}], form=form)
    reader.frame()
    warnings = json.loads(reader.warnings.take())
    return [(kind, event, remedy, times, line) for kind, _, _, event, remedy, times, _, line, _ in warnings
            if kind in (LONG, SHORT)]  # fmt: skip


@pytest.mark.parametrize("form", ["own", "azure"])
@pytest.mark.parametrize(
    "content, expected, remedy",
    [
        (b"a,b\n1,2\n3,4,5\n6,7,8\n", (LONG, 2, 3, "3 fields"), "put values that hold the delimiter in quotes"),
        (b"a,b\n" + MANY + b"3,4,5\n", (LONG, 1, 202, "3 fields"), "put values that hold the delimiter in quotes"),
        (b"a,b\n1,2,3\n4,5,6\n", (LONG, 2, 2, "3 fields"), "put values that hold the delimiter in quotes"),
        (b'a,b\n1,"say \\"hi\\", you"\n', (LONG, 1, 2, "3 fields"), QUOTES),
        (b"a,b\n1,2\n\n3\n", (SHORT, 1, 4, "1 field"), "write all their fields"),
        (b"a,b\r\n1,2\r\n3\r\n", (SHORT, 1, 3, "1 field"), "write all their fields"),
        (b"a,b,c\n" + b"1,2,3\n" * 200 + b'4,"five\nsix",7\n', (SHORT, 2, 202, "2 fields"), BROKEN),
    ],
    ids=["longer", "after the sample", "all longer", "backslashes", "shorter", "returns", "a value of two lines"],
)
def test_rows_of_another_length_than_the_header_are_told(
    tmp_path: Path, form: str, content: bytes, expected: tuple[str, int, int, str], remedy: str
) -> None:
    assert [
        (kind, times, line, event.partition(" where")[0].removeprefix("a row has "), told[: len(remedy)])
        for kind, event, told, times, line in told_of(tmp_path, content, form)
    ] == [(*expected, remedy)]


@pytest.mark.parametrize(
    "content, options",
    [
        (b"a,b\n1,2\n3,4\n", {}), (b"a,b\n1,2,\n3,4,\n", {}), (b'a,b\n1,"x, y"\n\n2,\n', {}),
        (b'a,b\n1,"x\ny"\n', {"support_multi_line": True}), (b"1,2\n3\n", {"header": "no_header"}),
    ],
    ids=["even", "a delimiter at each end", "quotes, and empty fields", "lines in a value", "no header"],
)  # fmt: skip
def test_rows_of_the_length_of_the_header_are_not_told(tmp_path: Path, content: bytes, options: dict[str, Any]) -> None:
    assert told_of(tmp_path, content, **options) == []
