"""The last stages of a job: the output is put together while workers shut down, the result recorded, all cleaned up."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.decided import Decided
from parallelrun_core.folder.manifest import last_closing
from parallelrun_core.folder.metrics import last_values
from parallelrun_core.folder.records import JobResult
from parallelrun_core.layout import listed
from parallelrun_core.service import failpoints
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.retry_policy import MiniBatchRetryPolicy
from parallelrun_core.storage.location import is_url
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.store.outcome_stream import Concatenated
from parallelrun_core.store.turns import wake
from parallelrun_core.wire.ending import what_failed
from parallelrun_core.wire.failure import JobFailure
from parallelrun_core.wire.states import JobState
from parallelrun_master.destinations import destinations_of
from parallelrun_master.leader.job_context import JobContext
from parallelrun_master.leader.leftovers import JobLeftovers, remove_what_sessions_needed
from parallelrun_master.leader.output_requests import OutputRequests
from parallelrun_master.ledger.ledger import Ledger
from parallelrun_master.outbox.entries import enqueue
from parallelrun_master.planning.leftover_warnings import SKIPPED
from parallelrun_master.planning.shuffling import discard
from parallelrun_master.policy.thresholds import over_threshold

if TYPE_CHECKING:
    from parallelrun_master.settings import MasterSettings

_LEAVE_S = 45.0
_REQUEST_S = 60.0
"""How long a request to a store may still be on its way when its upload is given up."""
_MOST_LOSSES = 3
"""How often the rows of one mini-batch are made again."""
_WAIT_MS = 100


class Finishing:
    """Everything that a leader does once its job is no longer `processing`."""

    def __init__(self, job: JobContext, settings: MasterSettings) -> None:
        self._job = job
        self._settings = settings
        self._leadership = job.leadership
        self._requests = OutputRequests(job)
        self._left_behind: list[str] = []

    def finalize(self) -> Concatenated | None:
        """Have the output put together while the workers shut down.

        Returns:
            The output, empty if the job has none, or why it can't be made. None: the leader resigns, or Redis has been
            set back so far that the job isn't finalizing.
        """
        job = self._job
        self._requests.start_over()
        failpoints.reach("finish.finalizing")
        job.reports.say("All mini-batches are decided; workers shut down.")
        with suppress(*CONNECTION_ERRORS):
            self._read_rest()
            if job.spec.writes_rows:
                job.reports.say("Concatenation begins.")
                self._requests.step(time.monotonic())
        self._wait_for_rest()
        with suppress(*CONNECTION_ERRORS):
            self._read_rest()  # what workers reported last: how long shutdown() took
        if self._leadership.is_resigning or job.state() is not JobState.FINALIZING:
            return None  # the next leader continues, or Redis has forgotten that far back
        if not job.spec.writes_rows:
            return Concatenated("", 0, "")
        output = self._wait_for_output()
        if output is not None:
            progress = job.ledger.progress
            progress.bytes_concatenated = progress.bytes_to_concatenate = output.length
        return output

    def can_mend(self, output: Concatenated) -> bool:
        """Return whether what keeps the output from being made can be made again, in a term that begins with reading
        all.

        Not for ever: a disk that loses the same rows again and again loses the job.
        """
        if not (output.lost or output.lacks_decisions):
            return False
        job = self._job
        job.reports.say(f"Damaged: {output.problem}.")
        job.log.error("damaged", what=output.problem, lost=len(output.lost))
        if max((job.ledger.times_lost[each.mini_batch] for each in output.lost), default=0) >= _MOST_LOSSES:
            return False
        if output.lacks_decisions and job.queue.count_setback("decisions_damaged") > _MOST_LOSSES:
            return False
        job.ledger.sync_and_trim(time.monotonic(), at_once=True)  # the next term must not take this for its own output
        return True

    def conclude_with(self, output: Concatenated) -> JobResult:
        """Record that the job has completed with this output, or has failed for want of one."""
        if output.problem:
            self._job.move(JobState.FAILED, JobFailure(code="CONCATENATION_FAILED", summary=output.problem))
            return self.conclude(JobState.FAILED)
        return self.conclude(JobState.COMPLETED, output)

    def conclude(self, state: JobState, output: Concatenated | None = None) -> JobResult:
        """Record how the job ended: first in the folder, then on Redis."""
        job, ledger = self._job, self._job.ledger
        self._read_rest()  # Redis has accepted it, so it isn't run again when the job is resumed
        status = job.registry.status(job.job_id)
        ledger.progress.running = ledger.progress.preparing = ledger.progress.nodes_wanted = 0
        ledger.progress.nodes_why = ""
        ledger.progress.workers = 0
        job.note_pace()
        closing = last_closing(job.folder.path)
        about_data = job.warnings.totals()
        job.reports.write_warnings(about_data)
        about_output = [*self._warnings(output), *self._register_outputs()] if output else []
        failure = self._with_all_counts(status.failure)
        failpoints.reach("finish.before_result")
        result = JobResult(
            job_id=job.job_id,
            state=state,
            started=status.started,
            ended=job.registry.now(),
            progress=ledger.progress,
            output=output.path if output else "",
            output_bytes=output.length if output else 0,
            output_sha256=output.sha256 if output else "",
            order=closing.order if closing else "",
            warnings=[*about_output, *(f"{remark}." for remark in job.remarks), *about_data.summary()],
            failure=failure,
            errors=ledger.errors.costliest(),
            skipped=sum(warning.times for warning in about_data if warning.kind == SKIPPED),
            metrics=last_values(job.folder.logs),
        )
        count = ledger.progress.items_lost - ledger.progress.items_estimated
        ledger.failed_items.write(job.folder.path, job.folder.logs, count)
        job.reports.conclude(result, ledger.errors)
        for notes in destinations_of(job.folder, job.record, job.queue.generation, self._settings.tracing()):
            enqueue(notes, job.job_id, job.queue.generation)
        result = job.folder.conclude(result, generation=job.queue.generation)
        failpoints.reach("finish.after_result")
        if state is JobState.COMPLETED:
            job.move(JobState.COMPLETED)
        failpoints.reach("finish.after_state")
        return result

    def _with_all_counts(self, failure: JobFailure | None) -> JobFailure | None:
        """Let a threshold that was crossed name all that has failed, as the result does: tries end after it, too."""
        ledger = self._job.ledger
        latest = over_threshold(self._job.spec, ledger.progress, ledger.errors)
        if failure is None or latest is None or failure.code != latest.code:
            return failure
        return msgspec.structs.replace(failure, summary=latest.summary)

    def retire(self, result: JobResult) -> None:
        """The result is recorded: show it, wait for the agents to leave, and clean up."""
        job = self._job
        target = job.folder.output_file(job.spec)
        leftovers = JobLeftovers(target, job.job_id, lambda: self._leadership.tick(time.monotonic()), job.log)
        leftovers.find()
        journals = listed(job.folder.journals)
        self._leadership.renew()  # so these are of this generation, even if the leader has slept for long
        self._show_end(result.state)
        text = msgspec.json.encode(result.progress)
        end = msgspec.json.encode(result.state)
        job.queue.show({"progress": text, "ended": repr(result.ended)}, event=("end", end))
        self._end_tracked_run(result.state)
        if job.parent is not None:
            wake(job.redis, job.parent.job_id)
        self._wait_for_agents(_LEAVE_S)
        have_all_left = self._have_all_left()
        self._show_end(result.state)
        leftovers.discard()
        if result.state is JobState.COMPLETED and not result.progress.failed:
            discard(job.folder.path)
        keys = listed(job.folder.keys)
        job.registry.retire(job.job_id, term=job.queue.term)
        if have_all_left:  # not before: the next term would still need the keys
            remove_what_sessions_needed(job.folder.layout, journals, keys)
        job.log.info("job_ended", state=result.state)

    def _end_tracked_run(self, state: JobState) -> None:
        """Tell MLflow, if a node has begun a run for the job. Its server may be away, and is not waited for."""
        if self._job.folder.layout.tracked_run.exists():
            from parallelrun_core.tracking.mlflow_run import end_run

            try:
                settings = self._settings
                end_run(self._job.folder, state, settings.mlflow_credentials(), settings.mlflow_tracking_uri)
            except (OSError, ParallelRunError) as error:
                self._job.log.warning("mlflow_unreachable", error=str(error))

    def _show_end(self, end: JobState) -> None:
        """Set the recorded state on Redis: a leader may have died before it did, or Redis have forgotten it since."""
        state = self._job.state()
        if end is JobState.COMPLETED:
            if state is JobState.QUEUED:
                self._job.move(JobState.PROCESSING)
            if state in (JobState.QUEUED, JobState.PROCESSING):
                self._job.move(JobState.FINALIZING)
        if state is not end:
            self._job.move(end)

    def _read_rest(self) -> None:
        """Record durably what the stream still has: it may have come after the end of the job, or not be reported yet.

        Raises one of `CONNECTION_ERRORS` when Redis is away.
        """
        ledger = self._job.ledger
        while entries := ledger.read(block_ms=None):
            ledger.record([outcome for entry in entries for outcome in entry.outcomes])
            self._requests.note(entries)
        ledger.sync_and_trim(time.monotonic(), at_once=True)

    def _read(self) -> None:
        """Wait for entries. Nothing can be decided any more: what still comes is about workers and the output."""
        self._requests.note(self._job.ledger.read(block_ms=_WAIT_MS))
        if self._leadership.tick(time.monotonic()):
            self._job.queue.reap(
                max_lost=MiniBatchRetryPolicy.of(self._job.spec).max_lost, max_lease_ms=self._settings.lease_ms
            )

    def _wait_for_rest(self) -> None:
        """Wait for what workers do in the end. Their agents stay until it is uploaded, which may be much."""
        job = self._job
        outputs = [job.folder.output_file(job.spec), *job.folder.output_paths(job.spec).values()]
        if not any(map(is_url, outputs)):
            self._wait_for_agents(_LEAVE_S)
            return
        most_s = _LEAVE_S + job.spec.task_overhead_timeout + _REQUEST_S
        self._wait_for_agents(most_s)
        with suppress(*CONNECTION_ERRORS):
            nodes = ", ".join(sorted({session.rpartition("-")[0] for session in job.queue.sessions()}))
            if nodes and not self._leadership.is_resigning:
                event = f"What workers on {nodes} have written in the end may be missing in the store"
                self._left_behind = [f"{event}: after {most_s:g} s, it was still not all there."]
                job.reports.say(self._left_behind[0])

    def _register_outputs(self) -> list[str]:
        """Make assets of the outputs that name one; returns why some could not be made."""
        job = self._job
        if not any(output.asset for output in job.spec.outputs.values()):
            return []
        from parallelrun_core.assets.registering import register_outputs

        paths = job.folder.output_paths(job.spec)
        assets, refused = register_outputs(
            job.folder.root, job.job_id, job.spec.outputs, paths, job.queue.generation, owner=job.record.owner
        )
        for asset in assets:
            job.reports.say(f"The output {asset.content['made_by']['output']!r} is registered as {asset.id}.")
        return refused

    def _warnings(self, output: Concatenated) -> list[str]:
        decided = self._job.ledger.decided
        about_rows = [*_about_text(decided), *_about_no_rows(self._job.spec, decided)]
        about_output = [*output.notes, *self._left_behind, *about_rows, *_not_written(self._job)]
        return [*_about_failures(self._job.ledger), *about_output, *self._job.damage]

    def _wait_for_agents(self, most_s: float) -> None:
        until = time.monotonic() + most_s
        while not self._leadership.is_resigning and time.monotonic() < until:
            try:
                if not any(self._job.queue.sessions()):
                    return
                self._read()
            except CONNECTION_ERRORS as error:
                self._job.wait_for_redis(error)
                if self._job.state() is JobState.PROCESSING:
                    return  # Redis has forgotten that they have to leave

    def _have_all_left(self) -> bool:
        """Return whether no node works for the job any more, and say so."""
        job = self._job
        with suppress(*CONNECTION_ERRORS):
            nodes = {session.rpartition("-")[0] for session in job.queue.sessions()}
            if nodes:
                job.reports.say(f"{', '.join(sorted(nodes))} have not left the job yet.")
            elif not self._leadership.is_resigning:
                job.reports.say("All nodes have left the job: they are free for others.")
                return True
        return False

    def _wait_for_output(self) -> Concatenated | None:
        """Ask for the output until a concatenator has made it, or that is hopeless; None when interrupted."""
        job, output = self._job, self._requests.made
        while output is None and not self._leadership.is_resigning:
            try:
                now = time.monotonic()
                status = job.registry.status(job.job_id)
                if status.state is not JobState.FINALIZING:
                    return None
                job.reports.refresh_concatenation(status.progress, now)
                output = self._requests.step(now)
                if output is None:
                    self._read()
            except CONNECTION_ERRORS as error:
                job.wait_for_redis(error)
        return output


def _about_failures(ledger: Ledger) -> list[str]:
    """A warning about what has failed, with the error that came first."""
    failed, first = what_failed(ledger.progress, ledger.errors.costliest()), ledger.errors.first
    if not failed:
        return []
    why = "" if first is None else f"; first: {first.category}: " + first.message.partition("\n")[0]
    return [f"{failed}{why}"]


def _not_written(job: JobContext) -> list[str]:
    """Warnings about outputs of a command, outside of stores, in which there is nothing at all. A path among the job's
    own files is left out: nothing will be there, and with `parallelrun run` the folder itself goes away."""
    paths = job.folder.output_paths(job.spec) if job.spec.command else {}
    return [
        f"The command has written nothing to its output {name!r}{f' ({path})' if job.spec.outputs[name].path else ''}."
        for name, path in paths.items()
        if not (is_url(path) or job.spec.outputs[name].has_artifacts) and _is_missing(Path(path))
    ]


def _is_missing(path: Path) -> bool:
    try:
        return not any(path.iterdir()) if path.is_dir() else not path.exists()
    except OSError:  # it can't be known
        return False


def _about_no_rows(spec: JobSpec, decided: Decided) -> list[str]:
    if not spec.writes_rows or decided.rows:
        return []
    return ["run() returned no row at all, so the output is empty; with empty_output: fail, such a job fails."]


def _about_text(decided: Decided) -> list[str]:
    """Warnings about rows of text that nobody can read back as they were."""
    warnings = []
    if decided.line_breaks:
        how = "append_row_safe_output, or an output file whose name ends in .jsonl or .parquet, keeps such rows whole"
        count = f"{decided.line_breaks:,}"
        warnings.append(f"Rows hold {count} line breaks, so the output has more lines than rows; {how}.")
    if decided.shortened:
        how = "an output file whose name ends in .jsonl or .parquet, or .tolist() in the script, keeps all of them"
        rows = "1 row holds" if decided.shortened == 1 else f"{decided.shortened:,} rows hold"
        warnings.append(f"{rows} an array of which the text leaves out values ('...'); {how}.")
    return warnings
