"""Findings about the time before the first mini-batch runs: listing, the environment, and init(), each by its name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.findings.case import Case, Guide
from parallelrun_core.figures import counted, duration


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """Return what made the workers wait."""
    yield from _listing(case)
    yield from _environment(case)
    yield from _init(case)


def _sooner(case: Case, by_s: float) -> float:
    """The job's time if each worker had been ready sooner."""
    return case.schedule.seconds(ready=[max(0.0, at - by_s) for at in case.schedule.ready])


def _listing(case: Case) -> Iterator[AdviceFinding]:
    listed = case.evidence.first_listed_s or 0.0
    yield from case.faster(
        "slow_listing",
        _sooner(case, listed),
        title=f"The first mini-batch was there only after {duration(listed)}: listing the input takes so long.",
        evidence=[
            f"{duration(listed)} from the job's start to the first mini-batch, of {duration(case.schedule.measured_s)}"
        ],
        change=Change(
            text="Divide huge folders, name the files in a table of paths (an MLTable) in place of a pattern that "
            "searches many folders, or bring the input to storage that lists faster."
        ),
    )


def _environment(case: Case) -> Iterator[AdviceFinding]:
    built = case.evidence.environment_s
    yield from case.faster(
        "environment_build",
        _sooner(case, built),
        title=f"Workers waited {duration(built)} until their Python environment was built.",
        evidence=[f"{duration(built)} of {duration(case.schedule.measured_s)} passed before the first init()"],
        change=Change(
            text="Leave `environment` as it is: nodes keep what they have built, so the next job begins at once. "
            "Nodes that are new each time need it in their image."
        ),
    )


def _init(case: Case) -> Iterator[AdviceFinding]:
    done = [init.seconds for init in case.evidence.inits if init.is_done]
    if not done:
        return
    typical = float(np.median(done))
    yield from case.faster(
        "slow_init",
        _sooner(case, typical),
        guide=Guide.TIMEOUTS,
        title=f"init() takes {duration(typical)} in each worker, before anything is done.",
        evidence=[
            f"{counted(len(done), 'worker')}, half of them longer than {duration(typical)} in init(), "
            f"of {duration(case.schedule.measured_s)}",
            f"the first mini-batch began after {duration(case.schedule.first_try_s)}",
        ],
        change=Change(
            text="Make init() cheaper: load a model from a local or memory-mapped file, bring downloads and "
            "installations into the environment, import only what is needed."
        ),
    )
