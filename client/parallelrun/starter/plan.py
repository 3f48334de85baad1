"""The plan of a first job's files: answers in, texts out. Pure: answers in, texts out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from parallelrun.starter.texts import (
    FILES_TO_FILES,
    FILES_TO_ROWS,
    JOB,
    OWN_FILES_ARGUMENT,
    OWN_FILES_OUTPUT,
    ROWS_OUTPUT,
    ROWS_OUTPUT_OF_TABLE,
    SAMPLE_TEXTS,
    TABLE_INPUT,
    TABLE_TO_FILES,
    TABLE_TO_ROWS,
    quoted,
    reading_step,
)


class SampleData(StrEnum):
    """The form of the job's data."""

    FILES = "files"
    TABLE = "table"


class Result(StrEnum):
    """The form of the job's result."""

    ROWS = "rows"
    FILES = "files"


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The answers about what somebody wants to run."""

    name: str
    data: SampleData = SampleData.FILES
    where: str = ""
    """The path or URL of the data, as the job file is to name it; empty: a small sample is written."""
    result: Result = Result.ROWS
    step: str = ""
    """The read step of the table, as YAML on one line; empty: as its name says."""


_SCRIPTS: Final = {
    (SampleData.FILES, Result.ROWS): FILES_TO_ROWS,
    (SampleData.FILES, Result.FILES): FILES_TO_FILES,
    (SampleData.TABLE, Result.ROWS): TABLE_TO_ROWS,
    (SampleData.TABLE, Result.FILES): TABLE_TO_FILES,
}
_SAMPLE: Final = {SampleData.FILES: "data", SampleData.TABLE: "data/sales.csv"}
_LINES_OF_SAMPLE: Final = 24


def files_of(answers: Answers) -> dict[str, str]:
    """The files to write, by their paths in the job's folder."""
    files = {"job.yml": _job(answers), "src/process.py": _SCRIPTS[answers.data, answers.result]}
    if not answers.where:
        files.update(_sample(answers.data))
    return files


def _job(answers: Answers) -> str:
    is_table, is_sample = answers.data is SampleData.TABLE, not answers.where
    where = quoted(answers.where or _SAMPLE[answers.data])
    rows = ROWS_OUTPUT_OF_TABLE if is_table else ROWS_OUTPUT
    return JOB.format(
        name=quoted(answers.name),
        inputs=TABLE_INPUT.format(where=where, step=answers.step or reading_step(answers.where))
        if is_table
        else f"inputs: {where}",
        size=_size(answers.data, is_sample=is_sample),
        output=rows if answers.result is Result.ROWS else OWN_FILES_OUTPUT,
        arguments=OWN_FILES_ARGUMENT if answers.result is Result.FILES else "",
    )


def _size(data: SampleData, *, is_sample: bool) -> str:
    if data is SampleData.TABLE:
        return f"mini_batch_size: {'rows:8' if is_sample else 'rows:1000':<14}# rows for each call of run()"
    return f"mini_batch_size: {2 if is_sample else 10:<14}# files for each call of run()"


def _sample(data: SampleData) -> Iterator[tuple[str, str]]:
    if data is SampleData.FILES:
        yield from ((f"data/{name}.txt", text) for name, text in SAMPLE_TEXTS.items())
        return
    lines = ["day,store,units,price"]
    for number in range(_LINES_OF_SAMPLE):
        day, store = number // 4 + 1, ("north", "south", "east", "west")[number % 4]
        lines.append(f"2026-01-{day:02},{store},{number * 7 % 13 + 1},{(number % 5 + 3) * 1.25:.2f}")
    yield _SAMPLE[SampleData.TABLE], "\n".join(lines) + "\n"
