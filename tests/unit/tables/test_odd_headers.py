"""Headers as the world writes them: in another order, below other lines, with a mark, or twice the same name."""

from __future__ import annotations

from typing import Any

import pytest

from parallelrun_worker.tables.data_warnings import DataWarnings
from tests.unit.tables.cutting import Cut, folder_with

READ = "read_delimited"
SIZES: tuple[int | str, ...] = (1 << 20, 30, "rows:2")
PLAIN = "id,x,y\n" + "".join(f"{number},{number}01,{number}02\n" for number in range(2, 9))
SWAPPED = "y,id,x\n" + "".join(f"{number}02,{number},{number}01\n" for number in range(9, 15))
ROWS = [(number, number * 100 + 1, number * 100 + 2) for number in range(2, 15)]


def cut_of(files: dict[str, bytes | str], size: int | str = 1 << 20, **options: Any) -> tuple[Cut, list[str]]:
    cut = Cut(folder_with(files), [{READ: options}], size)
    cut.table.format.warnings = warnings = DataWarnings()
    for piece in cut.pieces:
        cut.table.read([(piece.path.decode(), *piece.rest)])
    return cut, [f"{each.what}; {each.remedy}" for each in warnings._by_key.values()]


@pytest.mark.parametrize("size", SIZES)
def test_columns_in_another_order_are_read_by_name(size: int | str) -> None:
    cut, warnings = cut_of({"a.csv": PLAIN, "b.csv": SWAPPED}, size, columns_by="name")
    assert cut.rows() == ROWS
    assert warnings == []


def test_columns_by_position_are_warned_of_where_a_header_differs() -> None:
    cut, warnings = cut_of({"a.csv": PLAIN, "b.csv": SWAPPED})
    assert cut.rows()[:7] == ROWS[:7]
    assert cut.rows()[7] == (902, 9, 901)
    assert warnings == [
        "its header is 'y', 'id', 'x', and its values were read as 'id', 'x', 'y', by their position; columns_by: name"
    ]


def test_columns_that_a_file_lacks_or_has_alone_are_warned_of() -> None:
    cut, warnings = cut_of({"a.csv": "a,b\n5,x\n", "b.csv": "c,a\nz,3\n"}, columns_by="name", infer_column_types=False)
    assert list(cut.frames[1].columns) == ["a", "b", "c"]
    assert [warning.partition(",")[0] for warning in warnings] == ["its header lacks 'c'", "its header lacks 'b'"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-be"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("columns_by", ["name", "position"])
def test_lines_before_a_header_are_no_records(encoding: str, line_end: str, columns_by: str) -> None:
    body = "id;x\n5;01\n# no, row\n3;02\n\n8;03\n"
    files = {
        "a.csv": f"sep=;\n{body}", "b.csv": f'"sep=;"\n# comment\n{body}', "c.csv": "sep=|\n" + body.replace(";", "|"),
        "d.csv": f"# comment\n\n{body}".replace(";", ","),
    }  # fmt: skip
    content = {name: text.replace("\n", line_end).encode(encoding) for name, text in files.items()}
    for size in SIZES:
        for multi_line in (False, True):
            options = {"comment": "#", "columns_by": columns_by, "support_multi_line": multi_line}
            cut = Cut(folder_with(content), [{READ: {**options, "infer_column_types": False}}], size)
            assert cut.rows() == [("5", "01"), ("3", "02"), ("8", "03")] * 4, (size, multi_line)
        taken = Cut(folder_with(content), [{READ: {"comment": "#"}}, {"skip": 2}, {"take": 3}], size)
        assert [row[0] for row in taken.rows()] == [8, 5, 3]


@pytest.mark.parametrize("size", SIZES)
def test_lines_are_skipped_before_each_header(size: int | str) -> None:
    files = {"a.csv": 'Report, of\nany "kind\nid,x\n5,1\n3,2\n', "b.csv": "\nmore\nid,x\n7,3\n"}
    cut = Cut(folder_with(files), [{READ: {"skip_lines": 2, "infer_column_types": False}}], size)
    assert cut.rows() == [("5", "1"), ("3", "2"), ("7", "3")]
    no_header = Cut(folder_with(files), [{READ: {"skip_lines": 3, "header": "no_header"}}], size)
    assert [row[0] for row in no_header.rows()] == [5, 3, 7]


def test_a_comment_mark_in_a_quoted_field_is_a_part_of_the_value() -> None:
    content = 'a,b\n#"x,y\n5,"one\n#two"\n#\n3,z\n'
    for size in SIZES:
        cut = Cut(folder_with({"a.csv": content}), [{READ: {"support_multi_line": True, "comment": "#"}}], size)
        assert cut.rows() == [(5, "one\n#two"), (3, "z")]


@pytest.mark.parametrize("options", [{"comment": "##"}, {"comment": ","}, {"comment": '"'}, {"skip_lines": -1},
                                     {"skip_lines": "x"}, {"columns_by": "luck"}])  # fmt: skip
def test_what_makes_no_sense_before_a_header_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="/read_delimited/"):
        Cut(folder_with({"a.csv": "a\n5\n"}), [{READ: options}])


def test_twenty_thousand_columns_are_named_and_matched_at_once() -> None:
    names = [f"c{number}" for number in range(20_000)]
    files: dict[str, bytes | str] = {
        "a.csv": ",".join(names) + "\n" + ",".join(["5"] * 20_000) + "\n",
        "b.csv": ",".join(reversed(names)) + "\n" + ",".join(["7"] * 20_000) + "\n",
    }
    cut = Cut(folder_with(files), [{READ: {"columns_by": "name"}}])
    assert [frame.iloc[0, 0] for frame in cut.frames] == [5, 7]
