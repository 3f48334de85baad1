"""Problems of the steps of a pipeline: all at once, each where the document has the field."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from parallelrun_core.errors import Conflict, InvalidInput, Problem
from parallelrun_core.intake.reading import Reading

Names = tuple[str, ...]
"""Of a step, after those of the pipelines that it is in."""


class StepProblems:
    """Gathers what is wrong with the steps of the pipeline that was read."""

    def __init__(self, reading: Reading) -> None:
        self._readings = {tuple(path.split("/")): job for path, job in reading.jobs()}
        self._invalid: list[Problem] = []
        self._conflicts: list[Problem] = []

    @contextmanager
    def of(self, step: Names) -> Iterator[None]:
        """Gather what is raised about the job of a step in this block, and go on behind it."""
        try:
            with self._readings[step].locating_problems():
                yield
        except (InvalidInput, Conflict) as error:
            if not error.problems:
                raise
            gathered = self._conflicts if isinstance(error, Conflict) else self._invalid
            gathered += error.problems

    def check(self) -> None:
        """Go no further if something is wrong.

        Raises:
            InvalidInput: with all that no later time can make right.
            Conflict: with what is only in the way now.
        """
        if self._invalid:
            raise InvalidInput(problems=tuple(self._invalid))
        if self._conflicts:
            raise Conflict(problems=tuple(self._conflicts))
