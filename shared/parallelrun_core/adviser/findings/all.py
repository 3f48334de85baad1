"""All findings: `ALL` is asked in turn; the order decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from parallelrun_core.adviser.advice import Finding
from parallelrun_core.adviser.findings import (
    beginning,
    contention,
    drift,
    failures,
    gpus,
    nodes,
    processes,
    reading,
    resources,
    sizes,
    skew,
)
from parallelrun_core.adviser.findings.case import Case

ALL: Final[tuple[Callable[[Case], Iterator[Finding]], ...]] = (
    beginning.findings_of,
    contention.findings_of,
    drift.findings_of,
    failures.findings_of,
    gpus.findings_of,
    nodes.findings_of,
    processes.findings_of,
    reading.findings_of,
    resources.findings_of,
    sizes.findings_of,
    skew.findings_of,
)
