"""A limit of calls a minute that four workers on two nodes keep together, as the service counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import data
from benchmarks.jobs import Jobs
from benchmarks.waits import scripts
from benchmarks.waits.service import Service
from parallelrun_core.limits.definition import Limit, limit_catalog

_IN_FLIGHT: Final = 32
_SETTLING_S: Final = 1.0
"""The last second counts in no window: there are fewer calls left than workers could have begun."""


@dataclass(frozen=True)
class RateKept:
    """Shares of the rate."""

    used: float
    """In the sliding window with the fewest calls, after the first window."""
    peak: float
    """In the sliding window with the most."""
    refused: int
    """Calls that the service has refused."""


def measure(scratch: Path, *, per_minute: int, calls: int, window_s: float) -> RateKept:
    """Run one job below a limit, and let the service count."""
    with Service(scratch, rate=per_minute) as service, Jobs(scripts.LIMITED, nodes=2) as jobs:
        limit_catalog(jobs.cluster.layout.root).define(Limit(name="service", requests_per_minute=per_minute))
        jobs.run(
            data.files(calls), rows=calls, mini_batch_size=1, mini_batches_in_flight=_IN_FLIGHT,
            rate_limits=["service"], environment_variables={"PORT": str(service.port)},
        )  # fmt: skip
        counted = service.take_calls()
    whole = per_minute * window_s / 60
    later = counted.between(counted.times[0] + min(window_s, 60.0), counted.times[-1] - _SETTLING_S)
    return RateKept(later.quietest(window_s) / whole, counted.busiest(window_s) / whole, counted.refused)
