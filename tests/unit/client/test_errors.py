"""The tree of errors, and how answers become errors."""

import re
from pathlib import Path

import pytest

from parallelrun import errors
from parallelrun.errors import ApiError, JobFailed, ParallelRunError, Problem, error_of
from parallelrun.http.transport import retry_after_s
from parallelrun.models import Failure, Job
from parallelrun_core import errors as core


def drawn_tree() -> dict[str, str]:
    """Error -> its parent, as the module's docstring draws it."""
    parents: dict[str, str] = {}
    open_branches: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        if drawn := re.match(r"^( {4}[│├└─ ]*)([A-Z]\w+)", line):
            depth, name = len(drawn.group(1)), drawn.group(2)
            while open_branches and open_branches[-1][0] >= depth:
                open_branches.pop()
            if open_branches:
                parents[name] = open_branches[-1][1]
            open_branches.append((depth, name))
    return parents


def test_the_docstring_draws_the_tree_of_errors() -> None:
    classes = {
        name: each
        for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, ParallelRunError) and each is not ParallelRunError
    }

    assert drawn_tree() == {name: each.__bases__[0].__name__ for name, each in classes.items()}


@pytest.mark.parametrize(
    "status, name",
    [
        (400, "InvalidRequest"),
        (401, "Unauthorized"),
        (403, "Unauthorized"),
        (404, "NotFound"),
        (409, "Conflict"),
        (412, "Conflict"),
        (413, "InvalidRequest"),
        (418, "ApiError"),
        (422, "InvalidRequest"),
        (429, "Unavailable"),
        (500, "Unavailable"),
        (503, "Unavailable"),
    ],
)
def test_the_status_decides_on_the_class(status: int, name: str) -> None:
    error = error_of(status, {})

    assert type(error).__name__ == name
    assert error.status == status
    assert str(status) in error.message


def test_a_problem_keeps_all_that_it_says() -> None:
    problem = {
        "title": "The request is not valid.",
        "detail": "/mini_batch_sise: unknown field",
        "code": "invalid_input",
        "errors": [{"pointer": "/mini_batch_sise", "message": "unknown field", "hint": None}, "not an entry"],
    }

    error = error_of(422, problem)

    assert (error.code, error.title, error.message) == ("invalid_input", problem["title"], problem["detail"])
    assert error.problems == (Problem(pointer="/mini_batch_sise", message="unknown field"),)
    assert error.problem == problem


@pytest.mark.parametrize("errors_field", [None, "text", 3, {"pointer": "/x"}])
def test_a_malformed_problem_is_still_an_error(errors_field: object) -> None:
    assert isinstance(error_of(500, {"errors": errors_field}), ApiError)


def test_an_error_of_a_name_that_core_has_too_is_one_of_core() -> None:
    shared = {name for name in errors.__all__ if hasattr(core, name)}

    assert {"Conflict", "NotFound", "Unauthorized", "Unavailable"} <= shared
    for name in shared:
        assert issubclass(getattr(errors, name), getattr(core, name))
    assert error_of(503, {}).retryable
    assert not error_of(404, {}).retryable
    assert issubclass(ApiError, ParallelRunError)


def test_the_text_of_a_failed_job_says_why_which_log_and_what_to_do() -> None:
    failure = Failure(
        code="ERROR_THRESHOLD",
        summary="2 items have failed, 0 are allowed.",
        first_cause="ZeroDivisionError: division by zero",
        traceback="File score.py, line 3",
        log="logs/user/error/node1/process000.txt",
        hint="mend run()",
    )
    job = Job(id="job_1", state="failed", failure=failure)

    assert str(JobFailed(job)).splitlines() == [
        "Job job_1 failed: 2 items have failed, 0 are allowed.",
        "first cause: ZeroDivisionError: division by zero",
        "log: user/error/node1/process000.txt",
        "hint: mend run()",
    ]
    assert "log: /out/logs/user/error/node1/process000.txt\n" in str(JobFailed(job, logs=Path("/out/logs")))
    assert str(JobFailed(Job(id="job_1", state="failed"))) == "Job job_1 failed: no reason was given"


@pytest.mark.parametrize(
    "text, expected",
    [("", None), ("3", 3.0), (" 0 ", 0.0), ("soon", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
)
def test_retry_after_is_seconds_or_a_date(text: str, expected: float | None) -> None:
    assert retry_after_s({"Retry-After": text}) == expected
