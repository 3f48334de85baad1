"""The end of a command in words, for logs/job_result.txt."""

from __future__ import annotations

from pathlib import Path

from parallelrun_core.errors import ParallelRunError
from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.layout import Logs
from parallelrun_core.plurals import counted
from parallelrun_core.wire.progress import Progress


def lines_of_command(logs: Path, progress: Progress) -> list[str]:
    """Return where the command ran, how long, and where to find what it printed; what was not decided is not known.

    Args:
        logs: those of the job, in its folder.
    """
    lines = []
    try:
        outcome = next(reversed([*read_decisions(logs.parent)]), None)
    except (OSError, ParallelRunError):  # the job has failed for it, and says so
        outcome = None
    if outcome is None:
        lines.append("The command has not ended.")
    elif outcome.process:
        how = "ended with exit code 0" if outcome.status == "done" else "failed"
        where = f"{outcome.node}/{outcome.process}"
        lines.append(f"The command {how} after {outcome.run_s or outcome.elapsed_s:.3f} s on {where}.")
        printed = (Logs(logs).stdout(outcome.node, outcome.process), Logs(logs).stderr(outcome.node, outcome.process))
        lines.append(f"What it printed: {', '.join(str(path.relative_to(logs)) for path in printed)}.")
    if progress.retried or progress.lost:
        lines.append(
            f"It was tried again {counted(progress.retried, 'time')}, and lost with its node "
            f"{counted(progress.lost, 'time')}."
        )
    return lines
