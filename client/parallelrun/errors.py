"""Every error that the client raises.

    ParallelRunError
    ├── InvalidInput            a job spec or a code folder is wrong; nothing was sent
    ├── ApiError                the server refused: `status`, `code`, `problems`
    │   ├── InvalidRequest      400, 413, 415, 422: it can't be understood, or a field is wrong
    │   ├── Unauthorized        401, 403: the token is missing or wrong
    │   ├── NotFound            404: no such job, log or output
    │   ├── Conflict            409, 412: the state of the job doesn't allow this
    │   └── Unavailable         429, 5xx: not now
    ├── ConnectionFailed        the server can't be reached, or the connection broke for good
    ├── TimedOut                the job hasn't ended within the time given
    ├── JobFailed               the job ended without a result: `job`
    ├── JobCanceled             the job was canceled: `job`
    └── ClusterFailed           the embedded cluster can't start or has stopped working

The root and `InvalidInput` are the classes of `parallelrun_core`. `Unauthorized`, `NotFound`, `Conflict` and
`Unavailable` are those of `parallelrun_core` as well as `ApiError`s. So one `except` catches what the server
refuses and what is refused here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parallelrun.models import Job
from parallelrun.progress.summary import failure_lines
from parallelrun_core import errors as core
from parallelrun_core.errors import InvalidInput, ParallelRunError, Problem

__all__ = [
    "ApiError",
    "ClusterFailed",
    "Conflict",
    "ConnectionFailed",
    "InvalidInput",
    "InvalidRequest",
    "JobCanceled",
    "JobFailed",
    "NotFound",
    "ParallelRunError",
    "Problem",
    "TimedOut",
    "Unauthorized",
    "Unavailable",
    "error_of",
]


class ApiError(ParallelRunError):
    """The server refused a request."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str = "",
        problem: dict[str, Any] | None = None,
        problems: tuple[Problem, ...] = (),
    ) -> None:
        super().__init__(message, problems=problems)
        self.status = status
        self.code = code
        """Stable name of the error, for programs."""
        self.problem = problem or {}
        """The body of the answer: `application/problem+json`."""
        self.title = str(self.problem.get("title", "")) or message


class InvalidRequest(ApiError):
    """The server can't accept what was sent."""


class Unauthorized(ApiError, core.Unauthorized):
    """The token is missing or wrong."""


class NotFound(ApiError, core.NotFound):
    """The server has no such job, log or output."""


class Conflict(ApiError, core.Conflict):
    """The state of the job doesn't allow this."""


class Unavailable(ApiError, core.Unavailable):
    """The server can't do this right now."""


class ConnectionFailed(ParallelRunError, code="connection_failed", retryable=True):
    """The server can't be reached."""


class TimedOut(ParallelRunError, code="timed_out"):
    """The job hasn't ended within the time given; it continues."""


class JobFailed(ParallelRunError, code="job_failed"):
    """The job failed. The text says why, which log to open, and what to do.

    Args:
        logs: the folder of its logs, if they are on this machine.
    """

    def __init__(self, job: Job, *, logs: Path | None = None) -> None:
        failure = job.failure
        lines = [f"Job {job.id} failed: {failure.summary if failure else 'no reason was given'}"]
        if failure:
            lines += failure_lines(failure, log_hint=lambda log: str(logs / log) if logs else log, traceback=False)
        super().__init__("\n".join(lines))
        self.job = job


class JobCanceled(ParallelRunError, code="job_canceled"):
    """The job was canceled."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"Job {job.id} was canceled.")
        self.job = job


class ClusterFailed(ParallelRunError, code="cluster_failed"):
    """The embedded cluster doesn't work."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    429: Unavailable,
}


def error_of(status: int, problem: dict[str, Any]) -> ApiError:
    """The error for an answer with this status; `problem` is its body, or empty if that is of another type."""
    kind = _BY_STATUS.get(status, Unavailable if status >= 500 else ApiError)
    entries = problem.get("errors")
    entries = entries if isinstance(entries, list) else []
    problems = tuple(
        Problem(
            pointer=str(entry.get("pointer", "")),
            message=str(entry.get("message", "")),
            hint=str(entry.get("hint") or ""),
        )
        for entry in entries
        if isinstance(entry, dict)
    )
    message = str(problem.get("detail") or problem.get("title") or f"The server answered with status {status}.")
    return kind(message, status=status, code=str(problem.get("code", "")), problem=problem, problems=problems)
