"""The page of limits has the numbers that the code has."""

from pathlib import Path
from typing import Final

import pytest

from parallelrun_api.http.connections import MAX_HEAD_BYTES
from parallelrun_api.http.paging import MAX_LIMIT
from parallelrun_api.http.requests import MAX_BODY_BYTES
from parallelrun_api.submission.upload import MAX_SPEC_BYTES
from parallelrun_core.code.snapshots import MAX_BYTES, MAX_FILES
from parallelrun_core.spec.command import MAX_SECONDS
from parallelrun_core.spec.job import MOST_IN_FLIGHT
from parallelrun_core.spec.pipeline import MAX_STEPS, MAX_TURNS
from parallelrun_core.spec.pipeline_steps import MAX_DEPTH, MAX_STEPS_IN_ALL
from parallelrun_core.wire.message import MAX_MESSAGE_BYTES

ROWS: Final = {
    f"a job file | {MAX_SPEC_BYTES >> 20} MiB",
    f"code of a job | {MAX_FILES:,} files, {MAX_BYTES >> 20} MiB",
    f"items of one mini-batch | a message of {MAX_MESSAGE_BYTES >> 10} KiB",
    f"mini-batches in flight in one worker | {MOST_IN_FLIGHT:,}",
    f"steps of a pipeline | {MAX_STEPS:,}, and {MAX_STEPS_IN_ALL:,} with",
    f"pipelines in pipelines | {MAX_DEPTH} deep",
    f"turns of a loop | {MAX_TURNS:,}",
    f"a `run()` of a command | {MAX_SECONDS:,} s",
    f"entries of one page of a list | {MAX_LIMIT}",
    f"the body of a request that is no upload | {MAX_BODY_BYTES >> 20} MiB",
    f"the head of a request | {MAX_HEAD_BYTES >> 10} KiB",
}


@pytest.mark.parametrize("row", sorted(ROWS))
def test_the_page_has_the_number_of_the_code(row: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "limits.md"
    assert f"| {row}" in page.read_text(encoding="utf-8")
