"""The last phases of a job: the output is put together while workers shut down, the result recorded, all cleaned up."""

from __future__ import annotations

import time
from contextlib import suppress

import msgspec

from parallelrun_core.failure import JobFailure
from parallelrun_core.folder.decisions import Decided
from parallelrun_core.folder.job_folder import JobResult
from parallelrun_core.folder.manifest import last_closing
from parallelrun_core.service import failpoints
from parallelrun_core.states import JobState
from parallelrun_core.store.concatenation_lock import release_concatenation
from parallelrun_core.store.connection import CONNECTION_ERRORS
from parallelrun_core.store.outcome_stream import Concatenated, StreamEntry
from parallelrun_core.store.rq.wake import ask_for_concatenation, concatenation_failed, concatenation_waits
from parallelrun_master.planning.shuffling import discard
from parallelrun_master.policy.concatenation import ConcatenationPolicy, Step
from parallelrun_master.term import Term

_LEAVE_S = 45.0
_LOOK_MS = 100


class Finishing:
    """Everything that a leader does once its job is no longer `processing`."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._made: Concatenated | None = None
        """What a concatenator has reported, perhaps at the request of an earlier leader."""
        self._postponed: Concatenated | None = None
        """A concatenator's report that it can't make the output now."""

    def finalize(self) -> JobResult | None:
        """Have the output put together while the workers shut down; returns the result unless interrupted."""
        term, policy = self._term, ConcatenationPolicy(self._term.queue.term)
        failpoints.reach("finish.finalizing")
        term.reports.say("All mini-batches are decided; workers shut down.")
        with suppress(*CONNECTION_ERRORS):
            self._read_rest()
            if term.spec.writes_rows:
                term.reports.say("Concatenation begins.")
                now = time.monotonic()
                self._look_at_concatenator(policy, now)  # an earlier leader may have asked for it
                if policy.tick(now) is Step.ASK:
                    self._ask(policy, now)
        self._wait_for_agents()
        with suppress(*CONNECTION_ERRORS):
            self._read_rest()  # what workers reported last: how long shutdown() took
        if term.resigning or term.state() is not JobState.FINALIZING:
            return None  # the next leader continues, or Redis has forgotten that far back
        made: Concatenated | None = Concatenated("", 0, "")
        if term.spec.writes_rows:
            made = self._concatenate(policy)
            if made is not None:
                progress = term.ledger.progress
                progress.bytes_concatenated = progress.bytes_to_concatenate = made.length
        if made is None:
            return None
        if made.problem:
            term.move(JobState.FAILED, JobFailure(code="CONCATENATION_FAILED", summary=made.problem))
            return self.conclude(JobState.FAILED)
        return self.conclude(JobState.COMPLETED, made)

    def conclude(self, state: JobState, made: Concatenated | None = None) -> JobResult:
        """Record how the job ended: first in the folder, then on Redis."""
        term, ledger = self._term, self._term.ledger
        self._read_rest()  # Redis has accepted it, so it isn't run again when the job is resumed
        status = term.registry.status(term.job_id)
        ledger.progress.running = ledger.progress.preparing = 0
        closing = last_closing(term.folder.path)
        failpoints.reach("finish.before_result")
        result = JobResult(
            job_id=term.job_id,
            state=state,
            started=status.started,
            ended=term.registry.now(),
            progress=ledger.progress,
            output=made.path if made else "",
            output_bytes=made.length if made else 0,
            output_sha256=made.sha256 if made else "",
            order=closing.order if closing else "",
            warnings=[*made.notes, *_about_text(ledger.decided)] if made else [],
            failure=status.failure,
        )
        term.reports.conclude(result, ledger.errors)
        result = term.folder.conclude(result, generation=term.queue.generation)
        failpoints.reach("finish.after_result")
        if state is JobState.COMPLETED:
            term.move(JobState.COMPLETED)
        failpoints.reach("finish.after_state")
        return result

    def retire(self, result: JobResult) -> None:
        """The result is recorded: show it, wait for the agents to leave, and clean up."""
        term = self._term
        leftovers = [*term.folder.output_file(term.spec).parent.glob(f".merging-{term.job_id}-*")]
        term.renew()  # so these are of this generation, even if the leader has slept for long
        self._show_end(result.state)
        text = msgspec.json.encode(result.progress)
        end = msgspec.json.encode(result.state)
        term.queue.show({"progress": text, "ended": repr(result.ended)}, event=("end", end))
        self._wait_for_agents()
        self._show_end(result.state)
        for leftover in leftovers:
            leftover.unlink(missing_ok=True)
        if result.state is JobState.COMPLETED and not result.progress.failed:
            discard(term.folder.path)
        term.registry.retire(term.job_id, term=term.queue.term)
        term.log.info("job_ended", state=result.state)

    def _read_rest(self) -> None:
        """Enter durably what the stream still has: it may have come after the end of the job, or not be reported yet.

        Raises one of `CONNECTION_ERRORS` when Redis is away.
        """
        ledger = self._term.ledger
        while entries := ledger.read(block_ms=None):
            ledger.enter([outcome for entry in entries for outcome in entry.outcomes])
            self._note(entries)
        ledger.settle(time.monotonic(), at_once=True)

    def _note(self, entries: list[StreamEntry]) -> None:
        """Keep what a concatenator reports."""
        for report in (entry.concatenated for entry in entries if entry.concatenated is not None):
            if report.is_postponed:
                self._postponed = report
            else:
                self._made = self._made or report

    def _show_end(self, end: JobState) -> None:
        """Set the recorded state on Redis: a leader may have died before it did, or Redis have forgotten it since."""
        state = self._term.state()
        if state is JobState.PROCESSING and end is JobState.COMPLETED:
            self._term.move(JobState.FINALIZING)
        if state is not end:
            self._term.move(end)

    def _wait_for_agents(self) -> None:
        until = time.monotonic() + _LEAVE_S
        while not self._term.resigning and time.monotonic() < until:
            try:
                if not any(self._term.queue.sessions()):
                    return
                self._read()
            except CONNECTION_ERRORS as error:
                self._term.wait_for_redis(error)
                if self._term.state() is JobState.PROCESSING:
                    return  # Redis has forgotten that they have to leave

    def _read(self) -> None:
        """Wait for entries. Nothing can be decided any more: what still comes is about workers and the output."""
        self._note(self._term.ledger.read(block_ms=_LOOK_MS))
        if self._term.tick(time.monotonic()):
            self._term.queue.reap(max_lost=self._term.spec.lost_leases, max_lease_ms=self._term.settings.lease_ms)

    def _ask(self, policy: ConcatenationPolicy, now: float) -> None:
        term = self._term
        is_queued = concatenation_waits(term.redis, term.job_id, attempt=policy.attempt)
        ask_for_concatenation(term.redis, term.job_id, attempt=policy.ask(now, is_queued=is_queued))

    def _concatenate(self, policy: ConcatenationPolicy) -> Concatenated | None:
        """Have a concatenator make the output, and another one when it dies; None when interrupted."""
        term = self._term
        while self._made is None and not term.resigning:
            try:
                now = time.monotonic()
                status = term.registry.status(term.job_id)
                if status.state is not JobState.FINALIZING:
                    return None
                term.reports.look_at_concatenation(status.progress, now)
                self._look_at_concatenator(policy, now)
                match policy.tick(now):
                    case Step.GIVE_UP:
                        return Concatenated("", 0, "", problem=policy.problem)
                    case Step.ASK:
                        self._ask(policy, now)
                self._read()
            except CONNECTION_ERRORS as error:
                term.wait_for_redis(error)
        return self._made

    def _look_at_concatenator(self, policy: ConcatenationPolicy, now: float) -> None:
        """Pass on to the policy what has become of the latest request."""
        term, pause_s = self._term, 0.0
        if concatenation_failed(term.redis, term.job_id, attempt=policy.attempt):
            release_concatenation(term.redis, term.job_id)
            pause_s = policy.died(now, crashes=term.queue.count_setback("concatenation_crashes"))
        elif term.queue.is_concatenating():
            policy.alive(now)
        if self._postponed is not None:
            problem, troubles = self._postponed.problem, 0
            if problem:
                term.log.warning("concatenation_trouble", problem=problem)
                troubles = term.queue.count_setback("concatenation_troubles")
            pause_s = policy.postponed(now, problem=problem, troubles=troubles)
            self._postponed = None
        if pause_s and not policy.problem:
            term.log.warning("concatenation_interrupted", again_in_s=pause_s)


def _about_text(decided: Decided) -> list[str]:
    """Warnings about rows of text that nobody can read back as they were."""
    found = []
    if decided.line_breaks:
        how = "append_row_safe_output, or an output file whose name ends in .jsonl or .parquet, keeps such rows whole"
        count = f"{decided.line_breaks:,}"
        found.append(f"Rows hold {count} line breaks, so the output has more lines than rows; {how}.")
    if decided.shortened:
        how = "an output file whose name ends in .jsonl or .parquet, or .tolist() in the script, keeps all of them"
        rows = "1 row holds" if decided.shortened == 1 else f"{decided.shortened:,} rows hold"
        found.append(f"{rows} an array of which the text leaves out values ('...'); {how}.")
    return found
