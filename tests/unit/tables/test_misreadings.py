"""Delimited text that was probably meant otherwise than as it is read: a warning tells, and nothing is guessed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tables.cutting import Cut, folder_with
from tests.unit.tables.test_values import Reader

READ = "read_delimited"
ROWS = "".join(f"{number},a {number}\n" for number in range(11, 16))
SIZES: tuple[int | str, ...] = (1 << 20, 1, 9, "rows:2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def told_of(folder: Path, content: bytes, form: str = "own", **options: Any) -> list[tuple[str, str, int, int, int]]:
    """Kind, remedy, times, line and byte of each warning about delimiters and joints."""
    (folder / "a.csv").write_bytes(content)
    reader = Reader(folder, [{READ: options}], form=form)
    reader.frame()
    warnings = json.loads(reader.warnings.take())
    return [(kind, remedy, *rest) for kind, _, _, _, remedy, times, _, *rest0 in warnings
            for rest in [(times, *rest0)] if kind in ("delimiter", "joined", "line_ends")]  # fmt: skip


@pytest.mark.parametrize("form", ["own", "azure"])
@pytest.mark.parametrize("delimiter", [";", "\t", "|", "\x01"])
@pytest.mark.parametrize("header", [True, False])
def test_a_delimiter_that_the_job_does_not_name_is_told(
    folder: Path, form: str, delimiter: str, *, header: bool
) -> None:
    rows = "\n".join(delimiter.join([f"{number}", "x y", f"2.{number}"]) for number in range(9))
    names = delimiter.join(["id", "text", "price"]) + "\n"
    options = {} if header else {"header": "no_header"}
    ((kind, remedy, times, *_),) = told_of(folder, ((names if header else "") + rows).encode(), form, **options)
    assert (kind, times) == ("delimiter", 9)
    assert remedy.startswith(f"delimiter: {json.dumps(delimiter)}, ")
    assert told_of(folder, (names + rows).encode(), form, delimiter=delimiter) == []


def test_a_delimiter_is_told_where_numbers_have_commas_and_where_a_comma_is_meant(folder: Path) -> None:
    for content, options, remedy in (
        (b"id;price\n1;2,5\n2;3,75\n", {}, 'delimiter: ";"'),
        (b"id,price\n1,2.5\n2,3.75\n", {"delimiter": ";"}, 'delimiter: ","'),
    ):
        assert [each.partition(", an option")[0] for _, each, *_ in told_of(folder, content, **options)] == [remedy]


def test_objects_of_json_that_are_read_as_delimited_text_are_told(folder: Path) -> None:
    for content in (b'{"a": 1}\n{"a": 2}\n', b'{"a": 1, "b": 2}\n{"a": 2, "b": 3}\n'):
        assert told_of(folder, content)[0][:2] == ("delimiter", "read_json_lines")


@pytest.mark.parametrize(
    "page", ["<!DOCTYPE html>\n<html>\n", "<html>\n<p>a,b\n", '<?xml version="1.0"?>\n<a>\n</a>\n']
)
def test_a_page_that_is_read_as_delimited_text_is_told(folder: Path, page: str) -> None:
    assert [remedy for _, remedy, *_ in told_of(folder, page.encode())] == [
        "leave it out of the input, or fetch it again"
    ]


@pytest.mark.parametrize("content", [
    b"text\na;b\nc;d\n", b"a;b\nx\ny\nz;1;2\n", b"id,x;y\n1,2;3\n", b'"a;b"\n', b"tags\n", b"n\n1\n2\n",
])  # fmt: skip
def test_texts_of_one_column_are_not_told(folder: Path, content: bytes) -> None:
    assert told_of(folder, content) == []


@pytest.mark.parametrize("form", ["own", "azure"])
@pytest.mark.parametrize("mark", ["", "\ufeff", "\x1a"])
@pytest.mark.parametrize("columns", ["id,text", "text,id", "text,note", "2023,2024"])
def test_a_header_between_rows_is_told_with_its_line(folder: Path, form: str, mark: str, columns: str) -> None:
    values = {"id": "7", "text": "x", "note": "y", "2023": "12", "2024": "13"}
    row = ",".join(values[name] for name in columns.split(",")) + "\n"
    text = columns + "\n" + row * 250
    ((kind, remedy, times, line, offset),) = told_of(folder, (text + mark + text + text).encode(), form)
    assert (kind, times, line) == ("joined", 2, 252)
    assert offset in (len(text), len(text) + len(mark))
    assert remedy.startswith("the step filter: ")


def test_rows_of_a_header_are_left_out_by_the_filter_that_the_warning_has(folder: Path) -> None:
    text = "id,text\n" + "7,x\n" * 250
    (folder / "a.csv").write_text(text + text)
    for step in ('col("text") != "text"', 'col("id") != "id"'):
        frame = Reader(folder, [READ, {"filter": step}]).frame()
        assert len(frame) == 500, step


def test_a_byte_order_mark_between_rows_is_told(folder: Path) -> None:
    told = told_of(folder, "id,x\n5,a\n\ufeff6,b\n".encode())
    assert [(kind, times, line, offset) for kind, _, times, line, offset in told] == [("joined", 1, 3, 9)]


@pytest.mark.parametrize("content", ["id,text\n5,id\n6,text\n", "id,text\n5,the id,text\n", "a,b\n5,\ufeff\n"])
def test_words_of_a_header_in_values_are_not_told(folder: Path, content: str) -> None:
    assert told_of(folder, content.encode()) == []


def test_a_byte_order_mark_before_an_object_of_json_is_no_part_of_it() -> None:
    content = '\ufeff{"a":1}\n\ufeff{"a":2}\n'.encode()
    for size in SIZES:
        assert Cut(folder_with({"a.jsonl": content}), ["read_json_lines"], size).rows() == [(1,), (2,)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-32-be", "cp1252"])
@pytest.mark.parametrize("end", ["\x1a", "\r\n\x1a", "\x1a" * 99], ids=["one", "line", "block"])
@pytest.mark.parametrize("multi_line", [False, True])
def test_end_marks_of_dos_are_no_records(encoding: str, end: str, *, multi_line: bool) -> None:
    end = end if encoding in ("utf-8", "cp1252") else end[-1]
    files = {name: (f"id,text\n{ROWS}16,b{end}").encode(encoding) for name in ("a.csv", "b.csv")}
    rows = [*((number, f"a {number}") for number in range(11, 16)), (16, "b")]
    options = {"support_multi_line": multi_line, **({"encoding": encoding} if encoding == "cp1252" else {})}
    for size in SIZES:
        assert Cut(folder_with(files), [{READ: options}], size).rows() == rows * 2, size
    assert Cut(folder_with(files), [{READ: options}, {"skip": 5}, {"take": 2}]).rows() == [(16, "b"), (11, "a 11")]


def test_end_marks_of_dos_are_no_objects() -> None:
    for size in SIZES:
        cut = Cut(folder_with({"a.jsonl": b'{"a":1}\r\n{"a":2}\r\n\x1a'}), ["read_json_lines"], size)
        assert cut.rows() == [(1,), (2,)]


def test_two_files_in_one_of_other_byte_orders_are_refused_with_the_place() -> None:
    content = "id,x\n5,a\n".encode("utf-16")
    turned = b"\xfe\xff" + "id,x\n6,b\n".encode("utf-16-be")
    with pytest.raises(ValueError, match=f"the text is not utf-16-le at byte {len(content)}"):
        Cut(folder_with({"a.csv": content + turned}), [READ]).rows()


@pytest.mark.parametrize("form", ["own", "azure"])
@pytest.mark.parametrize("end", ["\x0b", "\x0c", "\x1e", "\x85", "\u2028"])
def test_a_file_of_a_header_alone_with_other_line_ends_is_told(folder: Path, form: str, end: str) -> None:
    rows = "".join(f"{number},x{end}" for number in range(9))
    ((kind, remedy, times, *_),) = told_of(folder, f"id,text{end}{rows}".encode(), form)
    assert (kind, remedy[:13], times) == ("line_ends", "save it as UT", 1)
    for content in (f"id,te{end}xt\n", f"id,te{end}xt\n1,x", "id,text", "имя,возраст"):
        assert told_of(folder, content.encode(), form) == []


def test_text_of_a_mainframe_that_is_read_in_a_code_page_is_told(folder: Path) -> None:
    content = "id,text\n" + "".join(f"{number},some words\n" for number in range(9))
    assert [kind for kind, *_ in told_of(folder, content.encode("cp500"), encoding="latin1")] == ["line_ends"]


@pytest.mark.parametrize("code_page", ["iso8859-2", "koi8-r", "cp437", "cp850", "mac-roman", "cp1251", "cp874"])
def test_noise_in_a_code_page_is_refused_and_a_text_is_read(folder: Path, code_page: str) -> None:
    for least in (0, 128):
        chance = random.Random(least)
        (folder / "a.csv").write_bytes(b"v,w\n" + bytes(chance.randrange(least, 256) for _ in range(5000)))
        with pytest.raises(ValueError, match=r"a\.csv: "):
            Reader(folder, [{READ: {"encoding": code_page}}]).frame()
    word = {"koi8-r": "привет", "cp1251": "привет", "cp874": "สวัสดี"}.get(code_page, "ä")
    (folder / "a.csv").write_bytes(("v,w\n" + f"{word * 9},{word}\n" * 99).encode(code_page))
    assert Reader(folder, [{READ: {"encoding": code_page}}]).frame()["w"].tolist() == [word] * 99
