"""What people read: the overview while the job runs, and why it ended as it did (reference §5)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from parallelrun_core.jobfolder import JobResult
from parallelrun_core.progress import Progress
from parallelrun_master.verdict import Errors

_OVERVIEW_EVERY_S = 10.0


class Overview:
    """logs/job_progress_overview.<yyyymmddhh>.txt: a line now and then, and at each turn of events."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._due = 0.0

    def say(self, text: str) -> None:
        """Add one line."""
        now = datetime.now(UTC)
        path = self._logs / f"job_progress_overview.{now:%Y%m%d%H}.txt"
        with path.open("a") as file:
            file.write(f"{now.isoformat(timespec='milliseconds')} {text}\n")

    def progress(self, progress: Progress, elapsed_s: float, now: float) -> None:
        """Say how far the job is, unless it was said a moment ago."""
        if now < self._due:
            return
        self._due = now + _OVERVIEW_EVERY_S
        total = f"{progress.scheduled:,}" + ("" if progress.listing_done else " so far")
        left = "unknown"
        if progress.listing_done and progress.decided:
            left = f"{elapsed_s * (progress.scheduled - progress.decided) / progress.decided:.0f} s"
        self.say(
            f"Processed {progress.decided:,} of {total} mini-batches in {elapsed_s:.0f} s; "
            f"{progress.running:,} running, {progress.failed:,} failed, "
            f"{progress.retried:,} tries repeated; estimated remaining {left}."
        )


def write_job_result(logs: Path, result: JobResult, errors: Errors, inputs: list[str]) -> None:
    """logs/job_result.txt: the file to open first."""
    progress = result.progress
    lines = [
        f"Job {result.job_id} {result.state}.",
        "",
        f"Mini-batches: {progress.scheduled:,} scheduled, {progress.done:,} done, {progress.failed:,} failed, "
        f"{progress.retried:,} tries repeated, {progress.lost:,} deliveries lost with their node.",
        f"Items: {progress.items_scheduled:,} in all, {progress.items_done:,} succeeded, "
        f"{progress.items_failed:,} failed.",
        f"Rows: {progress.rows:,}.",
        f"Inputs: {', '.join(inputs)}.",
    ]
    if result.order:
        how = (
            "sorted by path" if result.order == "sorted" else "as the file system listed them (a folder was too large)"
        )
        lines.append(f"Order of the mini-batches: {how}.")
    if result.output:
        lines.append(f"Output: {result.output}, {result.output_bytes:,} bytes, sha256 {result.output_sha256}.")
    if result.failure is not None:
        failure = result.failure
        lines += ["", f"Reason: {failure.code}: {failure.summary}"]
        lines += [f"First cause: {failure.first_cause}"] if failure.first_cause else []
        lines += [failure.traceback.rstrip()] if failure.traceback else []
        lines += [f"Hint: {failure.hint}"] if failure.hint else []
        lines += [f"Open next: {failure.log}"] if failure.log else []
    common = errors.most_common(5)
    if common:
        lines += ["", "The commonest errors:"]
        for signature in common:
            samples = ", ".join(map(str, signature.mini_batches))
            lines.append(f"{signature.count:8,} x {signature.category}: {signature.message} (mini-batches {samples})")
    (logs / "job_result.txt").write_text("\n".join(lines) + "\n", errors="backslashreplace")


README = """What is where in this folder

job_result.txt                        how the job ended, and why: open it first
job_progress_overview.<hour>.txt      how far the job was at what time
user/error/<node>/<process>.txt       every error of the entry script, with its traceback
user/stdout/<node>/<process>.stdout.txt   what the entry script printed, and its logging
user/stderr/<node>/<process>.stderr.txt
"""
