"""Jobs: submit, inspect, follow, wait for, cancel, resume, retry."""

from __future__ import annotations

import math
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from parallelrun.errors import ApiError, ConnectionFailed, JobCanceled, JobFailed, TimedOut
from parallelrun.http.retry import patiently
from parallelrun.models import Job, Step
from parallelrun.packaging.submission import notes_on, submission_headers
from parallelrun.resources.events import Event, follow_events
from parallelrun.resources.job_insight import JobInsight
from parallelrun.resources.resource import as_model, job_path
from parallelrun.resources.sending import SendsJobs
from parallelrun_core.answers.remembered import Forgotten

if TYPE_CHECKING:
    from parallelrun.job_file.reading import Document
    from parallelrun_core.spec import JobSpec, PipelineSpec

_LONG_POLL_S: Final = 20.0
_FOLLOW_S: Final = 1.0
_NO_VERSION: Final = 2**53 - 1
"""Above every version of a job: a request that names it is answered early only when the job ends."""
_PAGE: Final = 200


class Jobs(JobInsight, SendsJobs):
    """The jobs of a server."""

    def create(
        self,
        spec: JobSpec | PipelineSpec | dict[str, Any] | Document | str | Path,
        *,
        idempotency_key: str | None = None,
        upload_code: bool = True,
        traceparent: str | None = None,
    ) -> Job:
        """Submit a job or a pipeline.

        Args:
            spec: the settings, a `ParallelRunStep`, a `parallel_run_function`, or the path of a job file, in our own
                format or in one of Azure ML's (docs/compatibility.md). Relative paths start from the folder of that
                file, or from the current folder.
            idempotency_key: submitting twice with the same key gives the same job. Random by default, so that a
                request whose answer was lost can be repeated.
            upload_code: send the code folder with the job, or those of all steps, and the folders of which images are
                built. Otherwise the server reads them at the same paths.
            traceparent: the span to whose trace the job belongs (docs/monitoring.md); by default that of the variable
                `TRACEPARENT`.

        Raises:
            InvalidInput: a field is wrong. Nothing was sent.
        """
        from parallelrun.job_file.reading import read_spec
        from parallelrun.resources.names import resolver_over

        reading = read_spec(spec, resolver_over(self._transport))
        key = idempotency_key or secrets.token_hex(16)
        document, sources = self._job_and_code(reading.spec, upload_code=upload_code)
        headers = submission_headers(key, traceparent)
        created = self._send("POST", "/v1/jobs", Job, document, sources, headers=headers)
        return msgspec.structs.replace(created, notes=notes_on(reading, created.notes))

    def get(self, job_id: str) -> Job:
        """A job as it is now."""
        return self._ask("GET", job_path(job_id), Job)

    def list(
        self,
        *,
        status: str | None = None,
        parent: str | None = None,
        steps: bool = False,
        owner: str | None = None,
        archived: bool = False,
        limit: int | None = None,
    ) -> Iterator[Job]:
        """Jobs, newest first; pages are fetched as they are needed.

        Args:
            status: only jobs in this state.
            parent: only the jobs of the steps of this pipeline.
            steps: also jobs of steps; by default, only what was submitted is listed.
            owner: only jobs of this person.
            archived: also jobs that are archived.
        """
        jobs = self._all(
            "/v1/jobs",
            Job,
            limit=min(limit or _PAGE, _PAGE),
            status=status or None,
            parent=parent or None,
            steps=steps,
            owner=owner,
            archived=archived,
        )
        return islice(jobs, limit)

    def steps(self, job_id: str) -> dict[str, Step]:
        """The steps of a pipeline by name, in an order in which they can run; none if the job is no pipeline."""
        return {step.name: step for step in self.get(job_id).steps}

    def cancel(self, job_id: str) -> Job:
        """Stop a job. Running work is discarded, and there will be no output. Canceling twice changes nothing.

        Raises:
            Conflict: it has ended, or its output is already being put together.
        """
        # A request whose answer was lost may be repeated: canceling a canceled job is not an error.
        answer = self._transport.request("POST", f"{job_path(job_id)}:cancel", idempotent=True)
        return as_model(answer, Job) if isinstance(answer, dict) and "id" in answer else self.get(job_id)

    def pause(self, job_id: str) -> Job:
        """Let nodes begin no more mini-batches of a job. What runs ends and counts; `resume` lets it go on.

        Raises:
            Conflict: it has ended.
        """
        return self._ask("POST", f"{job_path(job_id)}:pause", Job)

    def prioritize(self, job_id: str, priority: str) -> Job:
        """Give a job another priority, while it waits or runs.

        Args:
            priority: low, normal or high; urgent, which only admins give.

        Raises:
            Conflict: it has ended.
        """
        return self._ask("POST", f"{job_path(job_id)}:prioritize", Job, {"priority": priority})

    def resume(self, job_id: str, *, accept_changed_inputs: bool = False, budget_usd: float | None = None) -> Job:
        """Run the mini-batches of a failed or canceled job that have no result yet; let a paused job go on.

        Args:
            budget_usd: the job's budget from now on, in US dollars, what it has spent included.

        Raises:
            Conflict: it has not ended, or it has completed.
        """
        options = {"accept_changed_inputs": accept_changed_inputs, "budget_usd": budget_usd}
        return self._ask("POST", f"{job_path(job_id)}:resume", Job, options, idempotent=False)

    def retry(
        self, job_id: str, *, mini_batches: Sequence[int] | None = None, accept_changed_inputs: bool = False
    ) -> Job:
        """Run what has failed in a job again, of all mini-batches or only of these, into the same output.

        Of a mini-batch some of whose items have failed alone, just these are run.

        Raises:
            Conflict: it has not ended, or nothing has failed.
            InvalidRequest: nothing has failed in one of the mini-batches.
        """
        options = {"mini_batches": mini_batches and [*mini_batches], "accept_changed_inputs": accept_changed_inputs}
        return self._ask("POST", f"{job_path(job_id)}:retry", Job, options, idempotent=False)

    def archive(self, job_id: str) -> Job:
        """Hide a job from lists. It stays, and whoever names it finds it.

        Raises:
            Conflict: it is a step of a pipeline.
        """
        return self._ask("POST", f"{job_path(job_id)}:archive", Job)

    def tag(self, job_id: str, tags: Mapping[str, str] | None = None, *, remove: Sequence[str] = ()) -> Job:
        """Set tags of a job, and remove others, also of one that has ended. Those that aren't named stay.

        Args:
            tags: values by name.
            remove: names.
        """
        change = {"set": dict(tags or {}), "remove": [*remove]}
        return self._ask("POST", f"{job_path(job_id)}:tag", Job, change)

    def restore(self, job_id: str) -> Job:
        """Take back that a job was archived or deleted. A deleted job can be restored for a day, or as long as the
        operator has set.

        Raises:
            NotFound: there is no such job any more.
        """
        return self._ask("POST", f"{job_path(job_id)}:restore", Job)

    def delete(self, job_id: str) -> None:
        """Delete a job that has ended, with its outputs, results and reports; of a pipeline, with its steps.

        Raises:
            Conflict: it has not ended, or something refers to it.
        """
        self._transport.request("DELETE", job_path(job_id), idempotent=True)

    def forget(self, job_id: str, key: str | None) -> Forgotten:
        """Delete answers that the script of a job that has ended has remembered, and return how many these were.

        Args:
            key: only that under this key; None: all of them.

        Raises:
            Conflict: it has not ended, or it is a pipeline.
        """
        return self._ask("DELETE", job_path(job_id, "remembered"), Forgotten, key=key)

    def events(
        self,
        job_id: str,
        *,
        last_event_id: str = "",
        on_disconnect: Callable[[Exception], None] | None = None,
    ) -> Iterator[Event]:
        """The events of a job as they happen; the last one is `end`.

        After a broken connection, the stream continues after the last event that was seen.

        Args:
            last_event_id: continue after this event of an earlier stream.
            on_disconnect: called with the reason whenever the connection breaks.

        Raises:
            ConnectionFailed: the server was away for too long.
        """
        return follow_events(
            self._transport, job_path(job_id, "events"), last_event_id=last_event_id, on_disconnect=on_disconnect
        )

    def wait(
        self,
        job_id: str,
        *,
        timeout_s: float | None = None,
        on_progress: Callable[[Job], None] | None = None,
        raise_on_failure: bool = True,
        progress: bool = True,
    ) -> Job:
        """Wait until a job has ended, and return it. The server may be away for a while meanwhile.

        Args:
            timeout_s: how long to wait at most; None: as long as it takes.
            on_progress: called with the job whenever something about it has changed.
            raise_on_failure: if False, a job that failed or was canceled is returned like one that completed.
            progress: in a notebook, show the progress below the cell; nowhere else.

        Raises:
            TimedOut: it hasn't ended in time, as far as is known; it continues.
            JobFailed, JobCanceled: it ended without a result.
            ConnectionFailed: the server was away for too long.
        """
        deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
        watchers = [watcher for watcher in (on_progress, _below_the_cell() if progress else None) if watcher]
        job = self.get(job_id)  # without patience: a mistyped URL should fail soon
        while True:
            for watcher in watchers:
                watcher(job)
            if job.has_ended:
                break
            job = self._wait_for(job, deadline, since=job.version if watchers else _NO_VERSION)
        if raise_on_failure and job.state == "failed":
            raise JobFailed(job)
        if raise_on_failure and job.state == "canceled":
            raise JobCanceled(job)
        return job

    def follow(
        self,
        job_id: str,
        *,
        every_s: float = _FOLLOW_S,
        on_disconnect: Callable[[Exception], None] | None = None,
    ) -> Iterator[Job]:
        """A job as it is now, again whenever it has changed and at least every so often, until it has ended.

        Args:
            on_disconnect: called with the reason whenever the server can't be reached; may raise to give up.

        Raises:
            ConnectionFailed: the server was away for too long.
        """
        job = self.get(job_id)
        yield job
        while not job.has_ended:
            since = job.version

            def ask(since: int = since) -> Job:
                try:
                    return self._get_later(job_id, since, every_s)
                except (ConnectionFailed, ApiError) as error:
                    if on_disconnect:
                        on_disconnect(error)
                    raise

            job = patiently(ask, sleep=self._sleep)
            yield job

    def _wait_for(self, job: Job, deadline: float, *, since: int) -> Job:
        """The job, once it has another version than `since` or has ended."""

        def ask() -> Job:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimedOut(f"Job {job.id} is still {job.state}.")
            return self._get_later(job.id, since, min(left_s, _LONG_POLL_S))

        while True:
            newer = patiently(ask, deadline=deadline, sleep=self._sleep)
            if newer.version != since or newer.has_ended:
                return newer

    def _get_later(self, job_id: str, since: int, wait_s: float) -> Job:
        """Return a job once its version is above `since`, or it has ended, but after this time at the latest."""
        return self._ask("GET", job_path(job_id), Job, wait=f"{wait_s:.3f}", since=since, read_timeout_s=wait_s + 10)


def _below_the_cell() -> Callable[[Job], None] | None:
    """Return what shows a job below the cell of the notebook in which this is; None: this is no notebook."""
    if "IPython" not in sys.modules:
        return None
    from parallelrun.progress.cell import Cell, is_in_notebook

    return Cell().show_job if is_in_notebook() else None
