"""What the proofs about tables find when a rule of cutting or reading is broken."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pandas as pd
import pytest

from parallelrun_core.spec import data_defaults
from parallelrun_master.planning import input_cuts, record_scan
from parallelrun_worker.rows.formats import parquet as parquet_rows
from parallelrun_worker.rows.returned_columns import ReturnedColumns
from parallelrun_worker.shuffle.chunks import ChunkReader, Damaged
from parallelrun_worker.shuffle.sorting import Keyed
from parallelrun_worker.tables import (
    arrow_arrays,
    by_arrow,
    json_by_arrow,
    parquet_pages,
    parquet_reader,
    sniffing,
    table,
    text,
    text_dtype,
    text_format,
    unpacking,
)
from parallelrun_worker.tables.formats import delimited
from parallelrun_worker.tables.schema import Schema
from parallelrun_worker.tables.table_format import Piece
from parallelrun_worker.tables.text_format import TextFormat, TextRecords
from parallelrun_worker.tables.values import Values
from tests.odd_files import test_odd_files
from tests.odd_files.cases import litter
from tests.odd_files.verdicts import judged
from tests.twins.sabotage import always, expect_failure
from tests.unit.concatenator import test_formats as formats
from tests.unit.tables import test_arrow_rows as arrow_rows
from tests.unit.tables import test_compressed_text as compressed
from tests.unit.tables import test_grouping as grouping
from tests.unit.tables import test_json_lines_agree as json_lines
from tests.unit.tables import test_misreadings as misreadings
from tests.unit.tables import test_odd_headers as headers
from tests.unit.tables import test_parquet_pages as pages
from tests.unit.tables import test_parsers_agree as parsers
from tests.unit.tables import test_quotes as quotes
from tests.unit.tables import test_ragged as ragged
from tests.unit.tables import test_round_trips as round_trips
from tests.unit.tables import test_silent_changes as changes
from tests.unit.tables import test_text_dtype as text_dtypes
from tests.unit.tables import test_values as values
from tests.unit.worker import test_rows_of_objects as rows


def test_ranges_that_are_read_as_they_are_cut_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rule that a range owns the records which begin in it."""
    monkeypatch.setattr(text, "after_newline", lambda _file, at, encoding: at + encoding.width)
    with expect_failure():
        round_trips.test_whatever_text_is_cut_the_same_rows_come_out()


def test_quotes_that_are_only_counted_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look at where they stand: a quote inside a field is a character like others."""
    monkeypatch.setattr(record_scan, "_are_in_place", always(True))
    with expect_failure():
        round_trips.test_whatever_text_is_cut_the_same_rows_come_out()


def test_keys_that_are_read_beside_nulls_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a second reading of the rows that have a value: in earlier releases, numbers beside nulls are floats."""
    monkeypatch.setattr(TextFormat, "values", always(None))
    whole = TextRecords.frame
    monkeypatch.setattr(
        TextRecords, "frame", lambda self, wanted=None: whole(self) if wanted is None else whole(self).iloc[wanted]
    )
    with expect_failure():
        grouping.test_each_row_is_once_in_the_group_of_its_keys()


def test_damaged_files_that_are_left_out_of_groups_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a group for each file that can't be read: its rows would be missing, and nobody told."""
    whole = ChunkReader.read

    def read(self: ChunkReader, piece: Piece) -> Keyed:
        try:
            return whole(self, piece)
        except Damaged:
            return Keyed([], [], [])

    monkeypatch.setattr(ChunkReader, "read", read)
    with expect_failure():
        grouping.test_files_that_are_damaged_are_one_failed_group_each_beside_the_others()


def test_grouped_rows_of_which_nobody_is_told_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With rows that are grouped without warnings, as they are read from groups; with a leader that tells of none."""
    with monkeypatch.context() as of_reader:
        of_reader.setattr(ChunkReader, "read", lambda self, piece, read=ChunkReader.read: _unheard(self, read, piece))
        with expect_failure():
            grouping.test_rows_that_are_grouped_are_warned_of_as_the_rows_of_any_table("leading zeros")
    monkeypatch.setattr(input_cuts, "warnings_of", always(()))
    with expect_failure():
        grouping.test_a_leader_tells_of_the_rows_that_it_has_had_grouped(tmp_path)


def _unheard(reader: ChunkReader, read: Callable[[ChunkReader, Piece], Keyed], piece: Piece) -> Keyed:
    with reader._table.noting():
        return read(reader, piece)


def test_values_that_arrow_makes_fit_the_first_one_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a look at whether all values of a column are of its kind."""
    monkeypatch.setattr(parquet_rows, "is_faithful", always(True))
    with expect_failure():
        formats.test_values_of_two_kinds_in_a_column_are_both_kept(tmp_path, 5)


def test_rows_that_are_read_from_the_beginning_of_their_page_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the number of rows that a page has before those of the mini-batch."""
    monkeypatch.setattr(parquet_reader, "_SMALL_BYTES", 0)
    pages.test_rows_of_cut_row_groups_are_those_that_pyarrow_reads(tmp_path)
    monkeypatch.setattr(parquet_pages, "_rows_before", always(0))
    with expect_failure():
        pages.test_rows_of_cut_row_groups_are_those_that_pyarrow_reads(tmp_path)


def test_a_quote_that_takes_in_more_than_its_field_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look at what the fast parser has made of quotes that are never closed, or only behind their line."""
    monkeypatch.setattr(by_arrow, "_is_sound", always(True))
    with expect_failure():
        parsers.test_a_fast_parser_finds_what_the_grammar_does(parser="pyarrow")


def test_values_that_are_changed_in_silence_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without notes of what was not read as it stands."""
    folder = tmp_path / "in"
    folder.mkdir()
    monkeypatch.setattr(Values, "note", always(None))
    with expect_failure():
        values.test_inference_that_would_change_values_gives_text_or_is_told(folder, "leading_zero")


def test_numbers_that_are_rounded_beside_those_of_other_files_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With the type that pandas finds for the rows of several files."""
    monkeypatch.setattr(table, "together", lambda frames: pd.concat(frames, ignore_index=True))
    with expect_failure():
        values.test_whole_numbers_of_several_files_in_one_mini_batch_are_exact(tmp_path_factory)


def test_open_quotes_of_which_nobody_is_told_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a look at quotes that a later line closes."""
    folder = tmp_path / "in"
    folder.mkdir()
    monkeypatch.setattr(delimited, "may_run_on", always(False))
    with expect_failure():
        quotes.test_open_quote_is_told_with_its_line(folder, "own", True)


def test_quotes_that_nobody_has_looked_behind_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a look of the master at what is before the quotes alone."""
    monkeypatch.setattr(record_scan, "_are_closed", always(True))
    with expect_failure():
        quotes.test_quotes_that_the_master_has_found_sound_are_not_open()


def test_conversions_to_null_of_which_nobody_is_told_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without notes of what a step has not converted."""
    folder = tmp_path / "in"
    folder.mkdir()
    monkeypatch.setattr(Values, "note", always(None))
    with expect_failure():
        changes.test_conversion_that_makes_values_null_is_told_once_a_column(folder, "own")


def test_columns_of_frames_that_stay_by_place_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the columns of each returned DataFrame in the order in which it has them."""
    monkeypatch.setattr(ReturnedColumns, "arranged", lambda _self, frame: frame)
    with expect_failure():
        rows.test_rows_of_frames_are_put_in_order_by_the_names_of_their_columns(tmp_path)


def test_json_lines_that_are_counted_as_objects_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look at the lines: two objects on one, and one on two, are as many."""
    monkeypatch.setattr(json_by_arrow, "_lines_of_objects", lambda data: data.count(b"{"))
    with expect_failure():
        json_lines.test_json_lines_by_pyarrow_are_those_read_one_by_one()


def test_rows_of_arrow_with_numbers_in_place_of_nulls_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NaN as it stands in a text, which is null for pandas."""
    monkeypatch.setattr(arrow_arrays, "with_null_for_nan", lambda column: column)
    with expect_failure():
        arrow_rows.test_arrow_rows_of_any_text_are_those_of_the_grammar()


def test_steps_of_arrow_that_see_texts_in_place_of_values_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a way through pandas for columns of several types, which are texts for Arrow."""
    monkeypatch.setattr(TextFormat, "has_texts_of_values", always(False))
    with expect_failure():
        arrow_rows.test_arrow_rows_after_steps_are_those_of_pandas("read_delimited", "filter of mixed", tmp_path)


def test_other_values_that_become_texts_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the dtype of texts for columns in which numbers are among them."""
    monkeypatch.setattr(text_dtype, "_TEXTS", ("string", "empty", "mixed", "mixed-integer"))
    with expect_failure():
        text_dtypes.test_texts_after_steps_are_those_that_stand_there_as_objects("read_json_lines", "none", tmp_path)


def test_tables_of_mltable_files_in_another_dtype_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the defaults of our own form for all inputs of its jobs."""
    monkeypatch.setattr(data_defaults, "_has_mltable", always(False))
    with expect_failure():
        text_dtypes.test_the_dtype_of_texts_is_decided_when_a_job_is_read({"b": text_dtypes.MLTABLE}, "object")


def test_bytes_of_no_text_that_are_read_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a look for bytes that no text has: any byte is a character of a code page."""
    folder = tmp_path / "in"
    folder.mkdir()
    monkeypatch.setattr(text_format, "check_controls", always(None))
    with expect_failure():
        changes.test_bytes_of_no_text_are_refused_in_a_code_page_wherever_they_begin(folder, "latin1", 3_000, 1)


def test_values_that_do_not_fit_and_become_null_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With nulls in place of values that on_mismatch keeps."""
    folder = tmp_path / "in"
    folder.mkdir()
    begin = Values.__init__

    def with_nulls(self: Values, _on_mismatch: str, *, is_exact: bool) -> None:
        begin(self, "null", is_exact=is_exact)

    monkeypatch.setattr(Values, "__init__", with_nulls)
    with expect_failure():
        values.test_odd_values_after_the_sample_are_kept_refused_or_told(folder, "x", "mismatch")


def test_columns_of_files_that_stay_by_place_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the order of a file's own header."""
    monkeypatch.setattr(Schema, "has_order_of", always(True))
    with expect_failure():
        headers.test_columns_in_another_order_are_read_by_name(1 << 20)


def test_headers_that_differ_and_of_which_nobody_is_told_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a comparison of each file's header with that of the first."""
    monkeypatch.setattr(delimited, "warn_of_header", always(None))
    with expect_failure():
        headers.test_columns_by_position_are_warned_of_where_a_header_differs()


def test_litter_that_is_skipped_without_a_word_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the warnings of a listing that has left out files."""
    monkeypatch.setattr(input_cuts, "leftover_warnings", always(()))
    tally = judged(islice(litter(random.Random("litter")), 4), ["own"])
    with expect_failure():
        test_odd_files.test_odd_files_with_litter_beside_them_are_read_and_the_litter_is_named(tally)
    assert tally.by_kind["6 litter", "silent"] == 4


def test_delimiters_of_which_nobody_is_told_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a look for another delimiter in a table of one column."""
    folder = tmp_path / "in"
    folder.mkdir()
    monkeypatch.setattr(delimited, "warn_of_delimiter", always(False))
    with expect_failure():
        misreadings.test_a_delimiter_is_told_where_numbers_have_commas_and_where_a_comma_is_meant(folder)


def test_headers_between_rows_of_which_nobody_is_told_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a look for the header of a file between its rows."""
    folder = tmp_path / "in"
    folder.mkdir()
    monkeypatch.setattr(delimited, "joint_in", always(None))
    with expect_failure():
        misreadings.test_a_byte_order_mark_between_rows_is_told(folder)


def test_end_marks_that_become_records_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the character Z with Control at the end of a file as a part of its text."""
    monkeypatch.setattr(text_format, "without_end_mark", lambda data, _encoding: data)
    with expect_failure():
        misreadings.test_end_marks_of_dos_are_no_records("utf-8", "\r\n\x1a", multi_line=False)


def test_noise_that_is_read_in_a_code_page_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a look for bytes that no text in such a code page has."""
    folder = tmp_path / "in"
    folder.mkdir()
    monkeypatch.setattr(sniffing, "_code_page", always(None))
    with expect_failure():
        misreadings.test_noise_in_a_code_page_is_refused_and_a_text_is_read(folder, "koi8-r")


def test_rows_of_other_lengths_of_which_nobody_is_told_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a look at how many fields the rows have, where a parser has found other numbers than it expected."""
    monkeypatch.setattr(delimited, "ragged_rows", always(()))
    longer = b"a,b\n1,2\n3,4,5\n", (ragged.LONG, 1, 3, "3 fields"), "put values"
    with expect_failure():
        ragged.test_rows_of_another_length_than_the_header_are_told(tmp_path, "own", *longer)
    with expect_failure():
        grouping.test_rows_that_are_grouped_are_warned_of_as_the_rows_of_any_table("longer and shorter rows")


def test_compressed_text_behind_a_frame_without_content_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a frame that holds nothing as the beginning of a text."""
    monkeypatch.setattr(unpacking, "_is_skippable", always(False))
    with expect_failure():
        compressed.test_frames_without_content_and_padding_are_no_rows(
            compressed.SKIPPABLE + compressed.zst(compressed.CSV.encode())
        )
