"""Advises a job in a process of its own: `python -m tests.unit.adviser.advise_huge_job ROOT JOB_ID`.

Prints a JSON array: the advice, and how many KiB the process has grown by meanwhile at its peak.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from parallelrun_core.adviser.advice import Thresholds
from parallelrun_core.adviser.advising import advise
from parallelrun_core.adviser.asked import SETTINGS
from parallelrun_core.adviser.reading.evidence import evidence_of
from parallelrun_core.adviser.what_if import curve_of
from parallelrun_core.folder.job_folder import JobFolder

LARGEST = (10_000, 4096, 1_000_000)
"""The largest value asked for of each of SETTINGS."""


def main(root: str, job_id: str) -> None:
    before_kb = peak_kb()
    evidence = evidence_of(JobFolder(Path(root), job_id))
    advice = advise(evidence, Thresholds(seconds=1.0))
    for setting, largest in zip(SETTINGS, LARGEST, strict=True):
        curve_of(evidence, setting, [1, 2, largest])
    print(msgspec.json.encode([advice, peak_kb() - before_kb]).decode())


def peak_kb() -> int:
    """The most memory that this process has had so far, in KiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
