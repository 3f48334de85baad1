"""Text as the world writes it, in every encoding and with every line end, wherever it is cut."""

from __future__ import annotations

import io
import json
import random

import pandas as pd
import pytest

from parallelrun_worker.tables.sniffing import NotText, check_controls, sniffed
from tests.unit.tables.cutting import Cut, folder_with

READ = "read_delimited"
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
LINE_ENDS = ("\n", "\r\n", "\r", "mixed", "late")
SIZES: tuple[int | str, ...] = (1, 7, 64, 1 << 20, "rows:1", "rows:4")
SCRIPTS = {
    "latin": "naïve “quotes” café", "cyrillic": "Привет мир", "chinese": "中文上海数据", "hindi": "नमस्ते",
    "plain": "x y", "greek": "Καλημέρα κόσμε",
}  # fmt: skip


def ended(lines: list[str], line_end: str, seed: int = 0) -> str:
    """Lines as a text; `late`: of newlines, the last third with carriage returns."""
    if line_end == "late":
        at = len(lines) * 2 // 3
        return ended(lines[:at], "\n") + ended(lines[at:], "\r")
    draw = random.Random(seed)
    return "".join(line + (line_end if line_end != "mixed" else draw.choice(["\n", "\r\n", "\r"])) for line in lines)


@pytest.mark.parametrize("line_end", LINE_ENDS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_delimited_text_of_any_encoding_and_line_end_is_read_exactly(encoding: str, line_end: str) -> None:
    for (script, word), size in zip(SCRIPTS.items(), SIZES, strict=False):
        lines = ["id,text", *(f"{number},{word} {number}" for number in range(2, 14))]
        content = ended(lines, line_end, seed=len(script)).encode(encoding)
        cut = Cut(folder_with({"a.csv": content}), [READ], size)
        assert cut.rows() == [(number, f"{word} {number}") for number in range(2, 14)], (script, size)


@pytest.mark.parametrize("line_end", [*LINE_ENDS, "\r\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-be"])
def test_delimited_text_with_line_ends_in_quotes_is_read_exactly(encoding: str, line_end: str) -> None:
    inside = line_end if line_end in ("\n", "\r\n", "\r\r\n") else "\r"
    lines = ["id,text", *(f'{number},"a, {inside} ""b"" {number}"' for number in range(2, 9)), "9,c", "10,d", "11,e"]
    content = ended(lines, line_end).encode(encoding)
    for size in SIZES:  # of which some pieces have no quotes
        cut = Cut(folder_with({"a.csv": content}), [{READ: {"support_multi_line": True}}], size)
        quoted = [(number, f'a, {inside} "b" {number}') for number in range(2, 9)]
        assert cut.rows() == [*quoted, (9, "c"), (10, "d"), (11, "e")], size


@pytest.mark.parametrize("line_end", LINE_ENDS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_json_lines_of_any_encoding_and_line_end_are_read_exactly(encoding: str, line_end: str) -> None:
    for (script, word), size in zip(SCRIPTS.items(), SIZES, strict=False):
        objects = [{"id": number, "text": f"{word} {number}"} for number in range(12)]
        lines = [json.dumps(each, ensure_ascii=False) for each in objects]
        cut = Cut(folder_with({"a.jsonl": ended(lines, line_end).encode(encoding)}), ["read_json_lines"], size)
        assert cut.rows() == [tuple(each.values()) for each in objects], (script, size)


@pytest.mark.parametrize("size", [1, 9, 1 << 20, "rows:2"])
def test_a_carriage_return_in_a_line_of_all_columns_is_a_part_of_the_value(size: int | str) -> None:
    cut = Cut(folder_with({"a.csv": "a,b\nx\ry,2\nz,3\n"}), [READ], size)
    assert cut.rows() == [("x\ry", 2), ("z", 3)]


def test_a_folder_of_mixed_encodings_is_read_exactly() -> None:
    files = {f"{encoding}.csv": f"id,text\n5,é {encoding}\n".encode(encoding) for encoding in ENCODINGS}
    cut = Cut(folder_with(files), [READ])
    assert cut.rows() == [(5, f"é {encoding}") for encoding in sorted(ENCODINGS, key="{}.csv".format)]


@pytest.mark.parametrize("code_page", ["cp1252", "cp1250", "cp1251", "gb18030", "shift_jis", "koi8-r"])
def test_another_code_page_is_refused_by_file_and_byte_and_read_when_it_is_written(code_page: str) -> None:
    words = {
        "cp1250": "Zażółć gęślą jaźń",
        "cp1251": "Привет, как дела",
        "koi8-r": "Привет, как дела",
        "gb18030": "中文上海数据库",
        "shift_jis": "日本語の文字列",
    }
    text = words.get(code_page, "déjà été à Noël")
    plain, odd = "id;text\n2;x\n", f"id;text\n3;{text}\n".encode(code_page)
    step = {"delimiter": ";"}
    at = next(number for number, byte in enumerate(odd) if byte >= 0x80)
    with pytest.raises(ValueError, match=rf"odd\.csv: the text is not utf-8 at byte {at} .*; set its encoding, as in "):
        Cut(folder_with({"a.csv": plain, "odd.csv": odd}), [{READ: step}])
    cut = Cut(folder_with({"a.csv": plain, "odd.csv": odd}), [{READ: {**step, "encoding": code_page}}])
    assert cut.rows() == [(2, "x"), (3, text)]


def test_the_guess_of_a_detector_can_be_written_as_the_encoding() -> None:
    text = "id;text\n" + "".join(f"{number};Привет, как ваши дела сегодня {number}\n" for number in range(2, 40))
    folder = folder_with({"a.csv": text.encode("cp1251")})
    with pytest.raises(ValueError, match=r"encoding: (\w+) \(a guess\)") as refused:
        Cut(folder, [{READ: {"delimiter": ";"}}])
    guess = str(refused.value).partition("encoding: ")[2].partition(" ")[0]
    assert Cut(folder, [{READ: {"delimiter": ";", "encoding": guess}}]).rows()[0] == (
        2,
        "Привет, как ваши дела сегодня 2",
    )


def test_a_guess_takes_no_letter_with_an_accent_for_half_of_a_character() -> None:
    text = "id,text\n" + "".join(f"{number},wört {number}\n" for number in range(2, 40))
    with pytest.raises(
        ValueError, match=r"the text is not utf-8 at byte 11 .*; set its encoding, as in encoding: windows"
    ):
        Cut(folder_with({"a.csv": text.encode("latin1")}), [READ])


def test_a_text_of_two_encodings_is_refused_with_the_place_of_the_second() -> None:
    text = "id,text\n2,wört\n".encode() + "3,wört\n".encode("latin1")
    with pytest.raises(ValueError, match=r"not utf-8 at byte 19 .*; what is before it is UTF-8, so that no other"):
        Cut(folder_with({"a.csv": text}), [READ])


@pytest.mark.parametrize("reader", [READ, "read_json_lines"])
@pytest.mark.parametrize("encoding", ["iso2022_jp", "iso2022_jp_2", "iso2022_kr"])
def test_text_with_escape_sequences_of_iso_2022_is_refused(encoding: str, reader: str) -> None:
    text = "한국" if encoding.endswith("kr") else "日本"
    for content in (f'{{"a": "{text}"}}\n', f'{{"a": 5}}\n{{"a": "{text}"}}\n'):
        with pytest.raises(
            ValueError, match=r"it is text of ISO 2022, with escape sequences from byte \d+ on: save it"
        ):
            Cut(folder_with({"a": content.encode(encoding)}), [reader])


@pytest.mark.parametrize("encoding", ["utf-7", "iso2022_jp", "cp037", "base64", "nonsense", "idna"])
def test_an_encoding_without_the_bytes_of_ascii_is_refused_at_submission(encoding: str) -> None:
    with pytest.raises(Exception, match="is not known"):
        Cut(folder_with({"a.csv": "a\n5\n"}), [{READ: {"encoding": encoding}}])


@pytest.mark.parametrize("declared", ["utf-8", "cp1252", "utf-16"])
def test_random_bytes_are_refused_as_no_text(declared: str) -> None:
    for seed in range(20):
        content = random.Random(seed).randbytes(5000)
        with pytest.raises(ValueError, match=r"a\.csv: "):
            Cut(folder_with({"a.csv": content}), [{READ: {"encoding": declared}}])


@pytest.mark.parametrize(
    "content", [b"a,b\n5,x\0y\n", b"a\0,b\n", b"id,pad\n" + b"5,abc\0\0\0\0\0\n" * 9, b"a,b\n5,2\n" + b"\0" * 99]
)
def test_text_with_a_few_zero_bytes_is_what_its_table_says(content: bytes) -> None:
    assert sniffed(lambda size, at: content[at : at + size], "utf-8").name == "utf-8"


def test_a_file_of_zero_bytes_and_control_characters_is_no_text() -> None:
    content = bytes(range(32)) * 8
    with pytest.raises(NotText):
        sniffed(lambda size, at: content[at : at + size], "cp1252")


@pytest.mark.parametrize("content, words", [
    (b"a,b\n5,2\n" + bytes(600), "from byte 8 on, 512 bytes and more are zero"),
    (b"a,b\n" + b"5,\x05\x06\x07\n" * 20, "of the 124 bytes from byte 0 on, 60 are control characters"),
    (b"\x06\x07" * 50, "of the 100 bytes from byte 0 on, 100 are control characters"),
])  # fmt: skip
def test_a_part_of_utf_8_that_is_no_text_is_refused_with_its_place(content: bytes, words: str) -> None:
    encoding = sniffed(lambda size, at: content[at : at + size], "utf-8")
    with pytest.raises(NotText, match=words):
        check_controls(content, encoding, 0, ",")


@pytest.mark.parametrize("content", [
    b"id,pad\n" + b"5,abc\0\0\0\0\0\n" * 9, b"a,b\n" + b"5,\x1b[31mred\x1b[0m\n" * 99, "a,b\n5,日本語\n".encode() * 99,
])  # fmt: skip
def test_text_with_padding_colours_or_other_alphabets_is_text(content: bytes) -> None:
    for declared in ("utf-8", "cp1252"):
        encoding = sniffed(lambda size, at: content[at : at + size], declared)
        if declared == "utf-8" or b"\0" not in content:
            check_controls(content, encoding, 0, ",")


def test_a_bad_json_line_fails_only_its_own_mini_batch_by_file_and_line() -> None:
    files = {
        f"{name}.jsonl": "".join(f'{{"id":{first + at}}}\n' for at in range(10)).replace('{"id":25}', '{"id":25')
        for first, name in zip((0, 10, 20, 30), "abcd", strict=True)
    }
    for size in (1 << 20, 20):
        cut = Cut(folder_with(files), ["read_json_lines"], size, keep_errors=True)
        (error,) = cut.errors
        assert "c.jsonl: line 6: it is not a JSON object" in error
        missing = {20, 21, 22, 23, 24, 25, 26, 27, 28, 29} if size > 100 else {24, 25, 26}
        assert {number for (number,) in cut.rows()} >= set(range(40)) - missing
        assert len(cut.rows()) == len(set(cut.rows()))


@pytest.mark.parametrize("line, problem", [
    ('{"id": 1, "id": 2}', "'id' more than once"), ('{"a": {"x": 1, "x": 2}}', "'x' more than once"),
    ("5", "not an object"), ('{"a": 1} {"b": 2}', "something follows"), ('{"a": 1},{"b": 2}', "something follows"),
    ('{"a": ÿ}', "Expecting value"),
])  # fmt: skip
def test_a_json_line_that_is_not_one_object_of_unique_names_is_refused(line: str, problem: str) -> None:
    good = '{"id": 7}'
    cut = Cut(folder_with({"a.jsonl": f"{good}\n\r\n{line}\n{good}\n"}), ["read_json_lines"], keep_errors=True)
    (error,) = cut.errors
    assert "a.jsonl: line 3: " in error
    assert problem in error
    dropping = [{"read_json_lines": {"invalid_lines": "drop"}}]
    assert Cut(folder_with({"a.jsonl": f"{good}\n{line}\n{good}\n"}), dropping).rows() == [(7,), (7,)]


@pytest.mark.parametrize("reader, suffix", [(READ, "csv"), ("read_json_lines", "jsonl")])
def test_a_first_file_that_is_no_text_fails_no_other(reader: str, suffix: str) -> None:
    good = "id\n5\n3\n" if suffix == "csv" else '{"id": 5}\n{"id": 3}\n'
    files: dict[str, bytes | str] = {f"a.{suffix}": random.Random(1).randbytes(999), f"b.{suffix}": good}
    cut = Cut(folder_with(files), [reader], keep_errors=True)
    assert cut.rows() == [(5,), (3,)]
    assert [f"a.{suffix}: " in error for error in cut.errors] == [True]


def parquet(rows: int) -> bytes:
    file = io.BytesIO()
    pd.DataFrame({"n": range(rows)}).to_parquet(file)
    return file.getvalue()


@pytest.mark.parametrize("damage", ["empty", "cut", "half", "footer", "other"])
def test_a_damaged_parquet_file_fails_only_its_own_mini_batch(damage: str) -> None:
    pytest.importorskip("pyarrow")
    whole = parquet(5)
    footer = whole[:-60] + b"\xff" * 50 + whole[-10:]
    bad = {"empty": b"", "cut": whole[:-1], "half": whole[:90], "footer": footer, "other": b"a,b\n5,2\n"}[damage]
    cut = Cut(folder_with({"a.parquet": bad, "b.parquet": whole}), ["read_parquet"], keep_errors=True)
    assert [len(frame) for frame in cut.frames] == [5]
    assert ["a.parquet: " in error for error in cut.errors] == [True]
    assert [piece.first_row for piece in cut.pieces] == [-1, -1]
    few = Cut(folder_with({"a.parquet": bad, "b.parquet": whole}), ["read_parquet", {"take": 3}], keep_errors=True)
    assert [len(frame) for frame in few.frames] == [3]
    assert ["a.parquet: " in error for error in few.errors] == [True]
    assert [warning.kind for warning in few.warnings] == ["uncounted"]
