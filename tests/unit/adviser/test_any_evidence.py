"""Whatever was measured, advice is made of numbers, and never promises more time than the job took."""

from __future__ import annotations

import math
import random

import msgspec
import numpy as np
import pytest

from parallelrun_core.adviser.advice import Thresholds
from parallelrun_core.adviser.advising import advise
from parallelrun_core.adviser.asked import SETTINGS
from parallelrun_core.adviser.evidence import Evidence, Floats, Init, MeasuredSettings, NodeUse, columns
from parallelrun_core.adviser.what_if import curve_of
from parallelrun_core.adviser.words import lines_of

PROCESSES = 4


def any_evidence(seed: int) -> Evidence:
    chance, count = random.Random(seed), random.Random(seed).choice([1, 2, 5, 40, 300])
    numbers = np.random.default_rng(seed)

    def seconds() -> Floats:
        most = 10.0 ** chance.randint(-4, 4)
        values: Floats = numbers.choice([0.0, most, 1.0], count) * numbers.uniform(0, 1, count)
        return values if chance.random() < 0.8 else np.zeros(count)

    def share() -> float | None:
        return chance.choice([None, 0.0, chance.random(), 1.0])

    process = numbers.integers(0, PROCESSES, count)
    started = seconds()
    tries = columns(
        mini_batch=numbers.integers(0, chance.choice([1, count]), count), status=numbers.integers(0, 3, count),
        node=process % 2, process=process, items=numbers.integers(0, chance.choice([1, 2, 50]), count),
        started_s=started, elapsed_s=seconds(), run_s=seconds(), load_s=seconds(), cpu_s=seconds(),
        peak_bytes=seconds() * 1e9, read_bytes=seconds() - 1, category=numbers.integers(0, PROCESSES, count),
    )  # fmt: skip
    use = NodeUse(
        cpus=chance.choice([None, 0.1, 4.0]), throttled=share(), memory_bytes=chance.choice([None, 1e9]),
        cpu_pressure=share(), memory_pressure=share(), threads=chance.choice([None, 1.0, 64.0]),
    )  # fmt: skip
    return Evidence(
        tries=tries, nodes=["n0", "n1"], processes=[f"n{each % 2}/p{each}" for each in range(PROCESSES)],
        categories=["", "RUN_TIMEOUT", "EXITED", "OOM_KILLED"], seconds=float(started.max()) + chance.random() * 100,
        inits=[Init("n0", f"p{each}", 0.0, chance.random()) for each in range(chance.randint(0, 6))],
        uses={"n0": use}, settings=MeasuredSettings(unit=chance.choice(["files", "bytes", "rows", ""])),
        first_listed_s=share(), environment_s=share() or 0.0,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_no_evidence_confuses_it(seed: int) -> None:
    evidence = any_evidence(seed)

    advice = advise(evidence, Thresholds(seconds=0.01))

    assert msgspec.json.decode(msgspec.json.encode(advice), type=type(advice)) == advice
    for finding in advice.findings:
        assert finding.title
        assert finding.evidence
        assert math.isfinite(finding.predicted_s)
        assert finding.saves != "time" or 0 < finding.saving_s <= evidence.seconds
    assert all("\n" not in line for line in lines_of(advice))
    for setting in SETTINGS if evidence.settings.unit else SETTINGS[:2]:
        assert all(math.isfinite(point.seconds) for point in curve_of(evidence, setting, [1, 2, 64]).points)
