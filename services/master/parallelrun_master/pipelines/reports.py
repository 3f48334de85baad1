"""Reports of a pipeline below its `logs`: what happened, and why (reference §5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from parallelrun_core.figures import counted
from parallelrun_core.folder.engine_log import EngineLog
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobResult
from parallelrun_core.pipelines.standing import StepStanding
from parallelrun_core.spec.pipeline import PipelineSpec
from parallelrun_core.untrusted.sanitize import in_one_line
from parallelrun_core.wire.states import StepState
from parallelrun_master.reports.files import replace_text
from parallelrun_master.reports.overview import Overview
from parallelrun_master.reports.result import how_it_ended, why_it_failed

_README = """What is where in this folder. Times are UTC. The logs of a step are with its own job.

job_result.txt                            how the pipeline ended, and each of its steps, with its job, and why
job_error.txt                             why the pipeline failed, in short; only if it did
job_progress_overview.<yyyymmddhh>.txt    what happened, step by step
<step>/                                   logs of a step that asks for it with copy_logs_to_parent
sys/master_role.txt                       the turns of the masters that led it
"""


class PipelineReports:
    """All that one turn writes below `logs`. What doesn't fit on a full disk is lost, and fails nothing."""

    def __init__(self, folder: JobFolder, term: int) -> None:
        self.log = EngineLog(folder.logs, "master_role")
        self._logs = folder.logs
        self._overview = Overview(folder.logs)
        self._term = term

    def say(self, text: str) -> None:
        """Something has happened, for the overview and the log."""
        self._overview.say(text)
        self.log.info(text)

    def begin(self, spec: PipelineSpec) -> None:
        """The pipeline begins, or goes on in a new generation."""
        replace_text(self._logs / "readme.txt", _README)
        many = _many(spec)
        self.say(f"The pipeline begins: {many}.")

    def stands(self, step: str, standing: StepStanding) -> None:
        """A step stands otherwise than before."""
        if standing.state is not StepState.WAITING:
            self.say(f"{step}: {in_words(standing)}.")

    def conclude(self, result: JobResult, by_step: Mapping[str, StepStanding]) -> None:
        counts = Counter(standing.state for standing in by_step.values())
        summed = ", ".join(f"{counts[state]:,} {state}" for state in StepState if counts[state])
        lines = [f"Pipeline {result.job_id} {how_it_ended(result)}.", "", f"Steps: {summed}."]
        lines += [f"    {name}: {in_words(standing)}" for name, standing in by_step.items()]
        lines += [f"Warning: {in_one_line(warning)}" for warning in result.warnings]
        if result.failure is not None:
            why = why_it_failed(result.failure)
            lines += ["", *why]
            replace_text(self._logs / "job_error.txt", "\n".join([lines[0], *why]) + "\n")
        else:
            (self._logs / "job_error.txt").unlink(missing_ok=True)  # of an earlier end, before the job went on
        lines += ["", "readme.txt says what is in the other files."]
        replace_text(self._logs / "job_result.txt", "\n".join(lines) + "\n")
        self.say(f"The pipeline {how_it_ended(result)}.")


def _many(spec: PipelineSpec) -> str:
    if spec.loop is None:
        return counted(len(spec.steps), "step")
    if spec.loop.type == "parallel_for":
        return f"{counted(len(spec.loop.items), 'turn')} of parallel_for"
    return f"do_while, of {counted(spec.loop.max_turns, 'turn')} at most"


def in_words(standing: StepStanding) -> str:
    """Return how a step stands, in one line."""
    why = in_one_line(standing.why)
    because = f": {why}" if why else ""
    if standing.is_reused:
        return f"completed at once: it reuses the outputs of job {standing.job_id}{because}"
    if not standing.job_id or standing.state is StepState.SKIPPED:
        return f"{standing.state}{because}"
    failure = standing.result.failure if standing.result is not None else None
    if failure is not None and standing.state is StepState.FAILED:
        because = f": {failure.code}: {in_one_line(failure.summary)}"
    return f"{standing.state}, job {standing.job_id}{because}"
