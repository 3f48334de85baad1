"""Slurm's reasons, states and errors in plain words; what isn't known here is passed on as Slurm says it. Pure.

The reasons are those of the manual page of `squeue`, "JOB REASON CODES".
"""

from __future__ import annotations

import re
from typing import Final

from parallelrun_core.untrusted.sanitize import in_one_line

_WAITS: Final[tuple[tuple[str, str], ...]] = (
    (r"None|Resources|NodesBusy", "waits until enough of the cluster is free"),
    (r"Priority", "waits behind jobs with a higher priority"),
    (r"Dependency", "is a second job of the same name, which waits for the first one's end"),
    (r"(QOS|Assoc).*Limit|(QOS|Assoc)(Max|Grp|Min).*", "waits because a limit of its account or QOS is reached"),
    (r"MaxCpuPerAccount|MaxGRESPerAccount", "waits because a limit of its account or QOS is reached"),
    (r"Partition(Node|Time)Limit", "asks for more than its partition allows, and will not start"),
    (r"PartitionDown|PartitionInactive", "waits because its partition takes no jobs now"),
    (r"BadConstraints|PartitionConfig", "asks for what no node of its partition has, and will not start"),
    (r"InvalidAccount", "names an account that isn't valid, and will not start"),
    (r"InvalidQOS", "names a QOS that isn't valid, and will not start"),
    (r"AccountNotAllowed|QOSNotAllowed", "may not use its partition, and will not start"),
    (r"ReqNodeNotAvail.*|NodeDown", "waits for nodes that are down, drained or reserved"),
    (r"JobHeldUser|JobHeldAdmin|JobHoldMaxRequeue", "is held: see `scontrol release`"),
    (r"Reservation.*", "waits for its reservation"),
    (r"Licenses", "waits for a license"),
    (r"BeginTime|Cleaning|Prolog", "is about to start"),
)
_ENDS: Final = {
    "BOOT_FAIL": "its machine didn't boot",
    "CANCELLED": "its Slurm job was cancelled",
    "COMPLETED": "",
    "DEADLINE": "its Slurm job had a deadline, which has passed",
    "FAILED": "its agent has failed",
    "LAUNCH_FAILED": "Slurm could not start it",
    "NODE_FAIL": "its machine has failed",
    "OUT_OF_MEMORY": "it used more memory than its Slurm job has",
    "PREEMPTED": "its Slurm job was preempted",
    "RECONFIG_FAIL": "its machine could not be set up",
    "REVOKED": "another cluster took its Slurm job",
    "TIMEOUT": "its time limit was reached",
}
ENDED: Final = frozenset(_ENDS)
"""The states of jobs that have ended."""
FAILED: Final = frozenset({"DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"})
"""The ends of agents that had begun, and that nobody asked to end: their logs say what they did last."""
WANTED_BY_SLURM: Final = frozenset({"CANCELLED", "NODE_FAIL", "PREEMPTED", "REVOKED"})
"""The ends that say nothing of what would become of another node. One that runs out of memory or time before it has
worked, or whose machine can't be set up, would do so again."""

# Of slurm_errno.h and of its client: nobody knows what has become of the call, or it may be better soon.
_PASSING: Final = re.compile(
    r"unable to contact|timed out|temporarily|try again|connection|socket|transport|zero bytes|communication|"
    r"authentication|credential|munge|shutdown|backup controller|in standby|not running",
    re.IGNORECASE,
)
_PREFIX: Final = re.compile(r"^(sbatch|squeue|scancel|scontrol): (error|fatal): ")


def wait_in_words(reason: str) -> str:
    """Why a job that is pending has not started."""
    plain = next((words for pattern, words in _WAITS if re.fullmatch(pattern, reason)), "waits")
    return plain if reason in ("None", "") else f"{plain} (Slurm: {in_one_line(reason)})"


def end_in_words(state: str, reason: str) -> str:
    """Why a job has ended; empty: it did so by itself, as it should."""
    plain = _ENDS["LAUNCH_FAILED" if reason == "JobLaunchFailure" else state] if state in _ENDS else state.lower()
    return f"{plain} (Slurm: {in_one_line(reason)})" if plain and reason not in ("", "None") else plain


def error_in_words(stderr: str) -> str:
    """Return what a command of Slurm has complained of, in one line and without its prefixes."""
    lines = [_PREFIX.sub("", line.strip()) for line in stderr.splitlines() if line.strip()]
    return in_one_line("; ".join(dict.fromkeys(lines)))[:1000]


def may_pass(error: str) -> bool:
    """Return whether it may be better to ask again, because Slurm has not refused."""
    return _PASSING.search(error) is not None
