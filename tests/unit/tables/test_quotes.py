"""Quotes that open a field and are not closed, or only by a later line: they are told, with their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parallelrun_master.planning import record_scan
from parallelrun_worker.tables.formats import delimited
from parallelrun_worker.tables.quotes import may_run_on, open_quotes
from parallelrun_worker.tables.records import Grammar
from tests.unit.tables.cutting import Cut, folder_with
from tests.unit.tables.test_values import Reader

MERGED = 'id,t\n1,a\n2,"b\n3,"c"\n4,d\n'
SOUND = 'id,t\n1,"a, ""b"""\n2,5" pipe\n3,"Joe" Smith\n4,""\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def told(folder: Path, text: str, form: str, **options: Any) -> list[list[Any]]:
    (folder / "a.csv").write_text(text)
    reader = Reader(folder, {"read_delimited": options}, form=form)
    reader.frame()
    warnings: list[list[Any]] = json.loads(reader.warnings.take())
    return [warning for warning in warnings if warning[0] == "open_quote"]


@pytest.mark.parametrize("form", ["own", "azure"])
@pytest.mark.parametrize("multi_line", [True, False])
def test_open_quote_is_told_with_its_line(folder: Path, form: str, multi_line: bool) -> None:
    warnings = told(folder, MERGED, form, support_multi_line=multi_line)
    assert len(warnings) == 1
    _, file, _, event, remedy, times, _, line, offset = warnings[0]
    assert file.endswith("a.csv")
    assert ("text follows" in event) == multi_line
    assert "support_multi_line" in remedy
    assert (times, line, offset) == (1, 3, MERGED.index('"b'))


@pytest.mark.parametrize("multi_line", [True, False])
def test_open_quote_is_not_seen_where_quotes_are_closed_or_are_within_a_field(folder: Path, multi_line: bool) -> None:
    assert not told(folder, SOUND, "own", support_multi_line=multi_line)
    assert not told(folder, 'id,t\n1,"a\nb"\n2,"c ""d""\ne"\n', "own", support_multi_line=True)


@pytest.mark.parametrize("form", ["own", "azure"])
@pytest.mark.parametrize("multi_line", [True, False])
def test_quote_behind_a_backslash_that_ends_its_field_is_told(folder: Path, form: str, multi_line: bool) -> None:
    warnings = told(folder, 'id,t\n1,"a"\n2,"b \\"c\\" d"\n3,"e"\n', form, support_multi_line=multi_line)
    ((_, _, _, event, remedy, times, _, line, _),) = warnings
    assert (event[:26], remedy[:27]) == ("a quote behind a backslash", "write a quote within quotes")
    assert (times, line) == (1, 3)
    sound = 'id,t\n1,"{""a"":""b\\""c""}"\n2,"C:\\"\n3,5\\"x\n'
    assert not told(folder, sound, form, support_multi_line=multi_line)


@pytest.mark.parametrize("form", ["own", "azure"])
def test_quote_of_a_header_that_is_not_closed_is_told(folder: Path, form: str) -> None:
    for multi_line, words in ((True, "is closed only on a later line"), (False, "is never closed")):
        ((_, _, _, event, *_),) = told(folder, 'id,"t\n1,a\n2,"b"\n3,c\n', form, support_multi_line=multi_line)
        assert event.startswith("header: ")
        assert words in event
    assert not told(folder, '"id","t\nu"\n1,a\n', form, support_multi_line=True)


@pytest.mark.parametrize(
    "text",
    ['1,"abc\n2,"def"\n', '"x,1\n2,3\n"y,z\n', '1,"a\r\n2,"d"\r\n', '1,"a\n2,"x\ny"\n', '1,"abc', '1,"a ""b\n2,"c"\n'],
)
def test_open_quote_that_a_whole_look_finds_is_found_by_a_quick_one(text: str) -> None:
    grammar = Grammar(",", multi_line=True)
    assert open_quotes(text.encode(), grammar) is not None
    assert may_run_on(text.encode(), grammar)


def pieces_of(content: bytes, block: int = 1 << 20, size: int = 1 << 20) -> list[tuple[bytes, bool]]:
    """The bytes of each piece of a file, and whether the master has found its quotes sound."""
    with patch.object(record_scan, "BLOCK_BYTES", block):
        step = {"read_delimited": {"support_multi_line": True, "header": "no_header"}}
        cut = Cut(folder_with({"a.csv": content}), [step], size, keep_errors=True)
    return [(content[piece.start : piece.end], piece.has_sound_quotes) for piece in cut.pieces]


@settings(max_examples=300, deadline=None)
@given(content=st.text('ab"",,\n\n\r', max_size=60), block=st.sampled_from([8, 16, 1 << 20]), size=st.integers(4, 60))
@example(content='1,"a\n2,"b\n', block=1 << 20, size=1 << 20)
@example(content='1,"a\n2,"b"\n3,"', block=8, size=9)
@example(content="aa,\n\r\r", block=8, size=4)  # a piece of line ends alone
def test_quotes_that_the_master_has_found_sound_are_not_open(content: str, block: int, size: int) -> None:
    for data, has_sound_quotes in pieces_of(content.encode(), block, size):
        assert not (has_sound_quotes and open_quotes(data, Grammar(",", multi_line=True)))


def test_quotes_of_what_a_library_writes_are_found_sound_by_the_master(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bytes] = []
    monkeypatch.setattr(delimited, "may_run_on", lambda data, _grammar: looks.append(data))
    rows = [(number, f'a "b"\n{number}', "", '"', "c,d") for number in range(500)]
    for line_end in ("\n", "\r\n"):
        content = pd.DataFrame(rows).to_csv(header=False, index=False, lineterminator=line_end).encode()
        pieces = pieces_of(content, block=1 << 10, size=3 << 10)
        assert len(pieces) > 3
        assert all(has_sound_quotes for _, has_sound_quotes in pieces)
    assert not looks


def test_quotes_are_left_alone_where_no_value_holds_a_newline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bytes] = []
    monkeypatch.setattr(delimited, "may_run_on", lambda data, _grammar: looks.append(data))
    assert not told(folder, 'id,t\n1,"a, ""b"""\n2,"c"\n', "own", support_multi_line=True)
    assert not looks
    assert not told(folder, 'id,t\n1,"a\nb"\n2,"c"\n', "own", support_multi_line=True)
    assert looks == [b'1,"a\nb"\n2,"c"\n']
