"""Every error that a user or another service can get. Each is declared in one line: its base, its `code` for programs,
and the status of an answer of the API with it. Its docstring is the sentence for people, where none is given.

`problems` carries one entry per wrong field, so that a user sees all of them at once, not one per attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A wrong field: where it is, what is wrong with it, what to do."""

    pointer: str
    message: str
    hint: str = ""
    place: str = ""
    """The file and line of the field, if known."""

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return ": ".join(filter(None, (self.place, self.pointer, f"{self.message}{hint}")))


class ParallelRunError(Exception):
    """Something went wrong in ParallelRun."""

    code = "internal_error"
    http_status = 500
    retryable = False

    def __init_subclass__(cls, *, code: str = "", http_status: int = 0, retryable: bool | None = None) -> None:
        super().__init_subclass__()
        declared = {"code": code or None, "http_status": http_status or None, "retryable": retryable}
        for name, value in declared.items():
            if value is not None:
                setattr(cls, name, value)

    def __init__(self, message: str = "", *, problems: tuple[Problem, ...] = ()) -> None:
        self.problems = problems
        self.message = message or "; ".join(map(str, problems)) or (type(self).__doc__ or "").strip()
        super().__init__(self.message)

    def replace_problems(self, change: Callable[[Problem], Problem]) -> None:
        """Replace each problem by a changed one, such as one with another pointer."""
        if self.problems:
            self.problems = tuple(map(change, self.problems))
            self.message = "; ".join(map(str, self.problems))
            self.args = (self.message,)


class InvalidInput(ParallelRunError, code="invalid_input", http_status=422):
    """The request is not valid."""

    @classmethod
    def at(cls, pointer: str, message: str, hint: str = "") -> InvalidInput:
        """The error for exactly one wrong field."""
        return cls(problems=(Problem(pointer=pointer, message=message, hint=hint),))


class UnsafePath(InvalidInput, code="unsafe_path"):
    """The path leaves the folder that it must stay in."""


class Unauthorized(ParallelRunError, code="unauthorized", http_status=401):
    """The bearer token is missing or wrong."""


class NotFound(ParallelRunError, code="not_found", http_status=404):
    """There is no such job, file or node."""


class Conflict(ParallelRunError, code="conflict", http_status=409):
    """The current state doesn't allow this."""


class Unavailable(ParallelRunError, code="unavailable", http_status=503, retryable=True):
    """Redis or the shared folder can't be reached right now."""


class NoRoom(ParallelRunError, code="no_room", http_status=507, retryable=True):
    """There is too little free space on the cluster's volume."""


class NewerSchema(ParallelRunError, code="newer_schema", http_status=409):
    """A newer release of ParallelRun has written this; this one can't read it."""


class CorruptLog(ParallelRunError, code="corrupt_log"):
    """A record can't be read."""


class Fenced(ParallelRunError, code="fenced", http_status=409):
    """Another process has taken over."""
