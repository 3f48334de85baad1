"""Quotes that open a field and are not closed, or only by a later line: they are told, with their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parallelrun_worker.tables.formats import delimited
from parallelrun_worker.tables.quotes import may_run_on, open_quotes
from parallelrun_worker.tables.records import Grammar
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


@pytest.mark.parametrize(
    "text",
    ['1,"abc\n2,"def"\n', '"x,1\n2,3\n"y,z\n', '1,"a\r\n2,"d"\r\n', '1,"a\n2,"x\ny"\n', '1,"abc', '1,"a ""b\n2,"c"\n'],
)
def test_open_quote_that_a_whole_look_finds_is_found_by_a_quick_one(text: str) -> None:
    grammar = Grammar(",", multi_line=True)
    assert open_quotes(text.encode(), grammar) is not None
    assert may_run_on(text.encode(), grammar)


def test_quotes_are_left_alone_where_no_value_holds_a_newline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bytes] = []
    monkeypatch.setattr(delimited, "may_run_on", lambda data, _grammar: looks.append(data))
    assert not told(folder, 'id,t\n1,"a, ""b"""\n2,"c"\n', "own", support_multi_line=True)
    assert not looks
    assert not told(folder, 'id,t\n1,"a\nb"\n2,"c"\n', "own", support_multi_line=True)
    assert looks == [b'1,"a\nb"\n2,"c"\n']
