"""Every error that a user or another service can get.

    ParallelRunError
    ├── InvalidInput            the request or the job spec is wrong                        422
    │   └── UnsafePath          a path or an archive member leaves its allowed folder       422
    ├── Unauthorized            the bearer token is missing or wrong                        401
    ├── NotFound                no such job, log, output or node                            404
    │   └── UnknownAsset        no such asset (names/assets.py)                             404
    │       └── UnknownVersion  it has no such version or label                             404
    ├── Conflict                the state of the job doesn't allow this                     409
    ├── Unavailable             Redis or the shared folder can't be reached right now       503
    ├── NoRoom                  there is too little free space on the cluster's volume      507
    ├── NewerSchema             a newer release has written this                            409
    ├── CorruptLog              a record log or message can't be read                       500
    └── Fenced                  another process has taken over                              409

Each class has a stable `code` for programs; the message is for people. `problems` carries one
entry per wrong field, so that a user sees all of them at once, not one per attempt.
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


class InvalidInput(ParallelRunError):
    """The request is not valid."""

    code = "invalid_input"
    http_status = 422

    @classmethod
    def at(cls, pointer: str, message: str, hint: str = "") -> InvalidInput:
        """The error for exactly one wrong field."""
        return cls(problems=(Problem(pointer=pointer, message=message, hint=hint),))


class UnsafePath(InvalidInput):
    """The path leaves the folder that it must stay in."""

    code = "unsafe_path"


class Unauthorized(ParallelRunError):
    """The bearer token is missing or wrong."""

    code = "unauthorized"
    http_status = 401


class NotFound(ParallelRunError):
    """There is no such job, file or node."""

    code = "not_found"
    http_status = 404


class Conflict(ParallelRunError):
    """The current state doesn't allow this."""

    code = "conflict"
    http_status = 409


class Unavailable(ParallelRunError):
    """Redis or the shared folder can't be reached right now."""

    code = "unavailable"
    http_status = 503
    retryable = True


class NoRoom(ParallelRunError):
    """There is too little free space on the cluster's volume."""

    code = "no_room"
    http_status = 507
    retryable = True


class NewerSchema(ParallelRunError):
    """A newer release of ParallelRun has written this; this one can't read it."""

    code = "newer_schema"
    http_status = 409


class CorruptLog(ParallelRunError):
    """A record can't be read."""

    code = "corrupt_log"


class Fenced(ParallelRunError):
    """Another process has taken over."""

    code = "fenced"
    http_status = 409
