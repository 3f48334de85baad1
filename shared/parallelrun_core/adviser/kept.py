"""Answers about a job that has ended, kept in its folder: each server would have to compute them again."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from parallelrun_core.adviser.asked import COMMON_QUESTIONS, parse_what_if
from parallelrun_core.documents.schema import SCHEMA, decode, encode
from parallelrun_core.durable_files import replace_file
from parallelrun_core.errors import Conflict, ParallelRunError

if TYPE_CHECKING:
    from pathlib import Path

    from parallelrun_core.adviser.advice import Advice
    from parallelrun_core.adviser.evidence import Evidence
    from parallelrun_core.folder.job_folder import JobFolder

_RULES: Final = 1
"""Another number whenever advice says something else of the same records: answers by other rules are not used."""
_MODE: Final = 0o600
LEAST_SAVING_S: Final = 60.0
"""The saving in seconds above which a finding is told by default."""


class KeptAnswers(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = SCHEMA
    rules: int = _RULES
    generation: int
    """The generation of the job that they are about."""
    answers: dict[str, str]
    """JSON by question."""


def path_of(folder: JobFolder) -> Path:
    """Return the file with the answers about a job."""
    return folder.path / "advice.json"


def advice_question(min_saving_s: float) -> str:
    return f"advice {min_saving_s:g}"


def curve_question(what_if: str, price: float | None) -> str:
    return what_if if price is None else f"{what_if} price {price:g}"


def kept_answer(folder: JobFolder, question: str) -> str | None:
    """Return the answer of a job that has ended, if it was kept since."""
    path = path_of(folder)
    with suppress(OSError, ParallelRunError):
        answers = decode(path.read_bytes(), KeptAnswers, path)
        if answers.rules == _RULES and answers.generation == folder.generation():
            return answers.answers.get(question)
    return None


def keep_common_answers(folder: JobFolder, evidence: Evidence, advice: Advice) -> None:
    """Keep what the page asks first: advice, and a curve for each setting.

    Args:
        advice: with the default thresholds.
    """
    from parallelrun_core.adviser.what_if import curve_of

    answers = {advice_question(LEAST_SAVING_S): msgspec.json.encode(advice).decode()}
    for question in COMMON_QUESTIONS:
        with suppress(Conflict):  # mini-batches without a size have no curve for it
            curve = curve_of(evidence, *parse_what_if(question))
            answers[curve_question(question, None)] = msgspec.json.encode(curve).decode()
    with suppress(OSError):
        replace_file(path_of(folder), encode(KeptAnswers(generation=folder.generation(), answers=answers)), mode=_MODE)
