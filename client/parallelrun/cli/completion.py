"""Completion in shells of more than commands, options and files: names that a server knows.

A shell waits for the answer, so a server has a moment to give it; what can't be had is not offered, without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import typer

from parallelrun.progress.text import clean

if TYPE_CHECKING:
    from parallelrun.client import Client

Offers: TypeAlias = Iterator[tuple[str, str]]
"""Each word with what a shell may print beside it."""

_PATIENCE_S: Final = 1.5
_MOST_OFFERS: Final = 50


def one_of(*words: str) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def job_states(incomplete: str) -> list[str]:
    from parallelrun_core.wire.states import JobState

    return one_of(*JobState)(incomplete)


def _offered(ctx: typer.Context, incomplete: str, ask: Callable[[Client], Iterable[tuple[str, str]]]) -> Offers:
    """Return what a server answers, as far as it begins as typed and is safe to show."""
    from parallelrun.client import Client
    from parallelrun.http.transport import RetryPolicy

    params: dict[str, Any] = ctx.params
    try:
        with Client(
            params.get("url") or "",
            params.get("token") or "",
            timeout_s=_PATIENCE_S,
            retry=RetryPolicy(attempts=1, busy_s=0),
        ) as client:
            matching = ((word, hint) for word, hint in ask(client) if word.startswith(incomplete))
            yield from ((clean(word), clean(hint, most=80)) for word, hint in islice(matching, _MOST_OFFERS))
    except Exception:  # an error message in the middle of somebody's command line helps nobody
        return


def _of_server(ask: Callable[[Client], Iterable[tuple[str, str]]]) -> Callable[[typer.Context, str], Offers]:
    def complete(ctx: typer.Context, incomplete: str) -> Offers:
        return _offered(ctx, incomplete, ask)

    return complete


jobs = _of_server(lambda client: ((job.id, f"{job.name} {job.state}") for job in client.jobs.list()))
datastores = _of_server(lambda client: ((each.name, each.location) for each in client.datastores.list()))
limits = _of_server(lambda client: ((each.name, "") for each in client.limits.list()))
schedules = _of_server(lambda client: ((each.name, "") for each in client.schedules.list()))
endpoints = _of_server(lambda client: ((each.name, each.description) for each in client.batch_endpoints.list()))


def logs(ctx: typer.Context, incomplete: str) -> Offers:
    """The paths of the logs of the job that is named before."""
    job_id = ctx.params.get("job_id") or ""
    printed = [(name, "what the workers' code printed") for name in ("stdout", "stderr")]

    def listed(client: Client) -> Iterator[tuple[str, str]]:
        yield from printed
        yield from ((log.path, f"{log.bytes:,} bytes") for log in client.logs.list(job_id))

    return _offered(ctx, incomplete, listed)
