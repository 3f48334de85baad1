"""A job of a million mini-batches as a server would describe it: with all that a report can show."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from typing import Any

from parallelrun.models import Failure, Job, Progress
from parallelrun.report.facts import Facts, NodeUsageSeries
from parallelrun_core.adviser.advice import Advice, AdviceFinding, Change
from parallelrun_core.answers.pictures import (
    EffectiveSetting,
    EffectiveSettings,
    Figures,
    KindOfError,
    KindsOfErrors,
    Lane,
    SlowTry,
    Throughput,
    Tiles,
    Timeline,
)

TRACEBACK = """Traceback (most recent call last):
  File "score.py", line 12, in run
    rows.append(score(path))
ValueError: {}
"""


def facts(
    *,
    name: str = "scans of the archive",
    words: str = "image file is truncated (4 bytes not processed)",
    **changed: Any,
) -> Facts:
    """What is known about it; `words` is in everything that others have a say in."""
    dice = random.Random(4)
    cells, bucket, lanes, moments, took = 589, 1698, 40, 180, 5423.0
    failed = [dice.randint(1, 40) if 300 < at < 318 or dice.random() < 0.02 else 0 for at in range(cells)]
    medians: list[float | None] = [
        0.05 * math.exp(2.4 * abs(math.sin(at / 60)) + dice.random() * 0.5) for at in range(cells)
    ]
    curve = [
        max(0.0, 1 - math.exp(-at / 6)) * (0.5 if 90 < at < 120 else 1) * (0.9 + dice.random() * 0.1)
        for at in range(200)
    ]
    job = Job(
        id="job_01m8aqxvz9q8s0crz2s4",
        name=name,
        state="failed",
        submitted="2026-11-23T06:10:02.000Z",
        started="2026-11-23T06:10:04.000Z",
        ended="2026-11-23T07:40:27.000Z",
        spec={"description": f"Every scan of 1950 to 1989, with the classifier of October. {words}"},
        progress=Progress(
            scheduled=1_000_000,
            listing_done=True,
            done=999_412,
            failed=588,
            retried=2310,
            items_scheduled=10_000_000,
            items_done=9_994_120,
            items_failed=5880,
            rows=9_994_120,
        ),
        failure=Failure(
            code="error_threshold",
            summary="5,880 items have failed; error_threshold is 500.",
            first_cause=f"ValueError: {words}",
            traceback=TRACEBACK.format(words),
            sample_mini_batches=[512_118, 512_119, 519_004],
            log="logs/user/error/node3/process002.error.txt",
            hint=f"Look at the files of mini-batch 512,118; or let run() leave such items out. {words}",
        ),
    )
    return Facts(
        job=job,
        server="http://127.0.0.1:8080",
        created=datetime(2026, 11, 23, 8, 0, tzinfo=UTC),
        figures=Figures(
            waited_s=2.1,
            first_try_s=41.0,
            took_s=took,
            nodes=10,
            workers=40,
            mini_batches=1_000_000,
            failed_mini_batches=588,
            tries=1_002_310,
            failed_tries=2898,
            items=10_000_000,
            rows=9_994_120,
            min_run_s=0.04,
            median_run_s=0.19,
            p95_run_s=0.51,
            p99_run_s=0.74,
            max_run_s=31.2,
            run_s=171_000,
            load_s=14_100,
            overhead_s=2100,
            init_s=1900,
            wasted_s=3100,
            busy_share=0.86,
            items_per_s=1844.0,
            mini_batches_per_s=184.4,
        ),
        tiles=Tiles(
            first=0,
            end=1_000_000,
            bucket_size=bucket,
            total=1_000_000,
            waiting=[0] * cells,
            running=[0] * cells,
            completed=[bucket - bad for bad in failed],
            failed=failed,
            retried=[bad * 3 for bad in failed],
            median_run_s=medians,
            max_run_s=[(value or 0) * 4 for value in medians],
        ),
        throughput=Throughput(
            start=job.started,
            bucket_s=took / 200,
            items=[round(1900 * took / 200 * value) for value in curve],
            mini_batches=[round(190 * took / 200 * value) for value in curve],
            failed=[12 if 110 < at < 118 else 0 for at in range(200)],
            retried=[9 if 80 < at < 130 else 0 for at in range(200)],
            busy_workers=[40 * min(1.0, value * 1.05) for value in curve],
        ),
        timeline=Timeline(
            start=job.started,
            length_s=took - 95,
            begin_s=0,
            end_s=took - 95,
            bucket_s=(took - 95) / moments,
            lanes_total=64,
            lanes=[_lane(dice, number, moments, (took - 95) / moments, words) for number in range(lanes)],
            median_run_s=0.19,
            slowest=[
                SlowTry(
                    mini_batch=77_000 + n,
                    node="node7",
                    process="process001",
                    begin_s=3000.0,
                    run_s=31.2 - n,
                    times_median=160.0 - n,
                )
                for n in range(6)
            ],
        ),
        errors=KindsOfErrors(
            count=2898,
            left_out=0,
            items=[
                KindOfError(
                    category="RUN_EXCEPTION",
                    place='File "score.py", line 12',
                    message=f"ValueError: {words}",
                    traceback=TRACEBACK.format(words),
                    count=2641,
                    mini_batches=list(range(512_118, 512_128)),
                    node="node3",
                    process="process002",
                    log="user/error/node3/process002.error.txt",
                ),
                KindOfError(
                    category="RUN_TIMEOUT",
                    message="run() did not end within 60 s",
                    count=257,
                    mini_batches=[81_204],
                    node=words,
                    process="process000",
                ),
            ],
        ),
        settings=EffectiveSettings(
            items=[
                EffectiveSetting(
                    name="mini_batch_size",
                    value=10,
                    default=None,
                    origin="given",
                    given_at="/mini_batch_size",
                    description="Files for each run().",
                    group="parallel",
                ),
                EffectiveSetting(
                    name="error_threshold",
                    value=500,
                    default=-1,
                    origin="given",
                    given_at="/error_threshold",
                    group="limits",
                    description="The job fails when more items than this have failed; -1: never.",
                ),
                EffectiveSetting(
                    name="inputs",
                    value={"data": {"path": f"/data/scans/{words}"}},
                    origin="given",
                    given_at="/inputs",
                    group="inputs",
                ),
                *(
                    EffectiveSetting(
                        name=f"setting_{n}", value=n, default=n, origin="default", description="A number.", group="run"
                    )
                    for n in range(20)
                ),
            ]
        ),
        advice=Advice(
            job_id=job.id,
            summary="",
            min_saving_s=60,
            min_saving_share=0.1,
            findings=[
                AdviceFinding(
                    id="mini_batch_too_small",
                    severity="moderate",
                    saves="time",
                    title="The mini-batches are too small.",
                    evidence=[
                        "a mini-batch takes 0.19 s",
                        f"17 % of the time of the workers is spent around run() {words}",
                    ],
                    change=Change(text="Give each mini-batch 500 files.", set={"mini_batch_size": "500"}),
                    saving_s=840,
                    saving_share=0.155,
                )
            ],
        ),
        usage=tuple(
            NodeUsageSeries(
                node=f"node{n}",
                begin="2026-11-23T06:10:05",
                end="2026-11-23T07:40:20",
                cpu=[88 + 10 * math.sin(at / 7 + n) for at in range(120)],
                memory=[30 + at / 3 for at in range(120)],
            )
            for n in range(6)
        ),
        **changed,
    )


def _lane(dice: random.Random, number: int, moments: int, bucket_s: float, words: str) -> Lane:
    run, load, init = [], [], []
    for at in range(moments):
        is_idle = at > 168 - number % 7 or (number in (11, 12) and 60 < at < 90)
        init.append(bucket_s * 0.9 if at == 0 else 0.0)
        load.append(0.0 if is_idle or not at else bucket_s * dice.choice((0.06, 0.08, 0.1)))
        run.append(0.0 if is_idle or not at else bucket_s * dice.choice((0.78, 0.84, 0.88)))
    return Lane(
        node=f"node{number // 4}",
        process=f"process{number % 4:03}",
        begin_s=0,
        end_s=bucket_s * 175,
        tries=25_000,
        failed_tries=number % 5,
        init=init,
        load=load,
        run=run,
    )
