"""What the proofs about Avro files find when a rule of cutting or reading them is broken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from parallelrun_master.planning.formats import avro as cutting
from tests.twins.sabotage import always, expect_failure

pytest.importorskip("fastavro")

from parallelrun_worker.tables.formats import avro as reading
from tests.unit.tables import test_avro as proofs


def test_rows_that_are_read_from_the_beginning_of_their_block_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the number of rows that belong to the piece before."""

    def from_the_beginning(piece: tuple[Any, ...], rows: Iterable[Any]) -> list[Any]:
        return list(rows)[: piece[6]]

    monkeypatch.setattr(reading, "_own", from_the_beginning)
    with expect_failure():
        proofs.test_whatever_its_blocks_are_each_row_is_read_once_and_in_order()


def test_rows_with_other_columns_that_nobody_compares_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_columns", always({}))
    with expect_failure():
        proofs.test_files_with_other_columns_are_refused_before_they_are_read(*proofs.DIFFERENT[1], keys=[])
