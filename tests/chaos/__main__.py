"""The long run: `python -m tests.chaos --seeds N`.

With `--store` for inputs and outputs in an object store, with `--auto` for jobs that choose the size of their
mini-batches, with `--pipelines` for pipelines of five steps in place of single jobs, and with `--waiting` for jobs
whose workers have several mini-batches in flight and wait for a service, which dies, too.
"""

from __future__ import annotations

import argparse
from collections import Counter
from contextlib import ExitStack

from tests.chaos import pipelines, scenarios, waiting
from tests.chaos.places import InStore
from tests.object_servers import SeaweedFS


def main() -> int:
    """Run the scenario of kills for many seeds; returns 0 if no row was missing or doubled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--store", action="store_true", help="inputs and outputs are in an object store")
    parser.add_argument("--auto", action="store_true", help="jobs choose the size of their mini-batches")
    parser.add_argument("--pipelines", action="store_true", help="pipelines of five steps, in place of single jobs")
    parser.add_argument("--waiting", action="store_true", help="jobs wait for a service, with several in flight")
    options = parser.parse_args()
    if options.waiting:
        return _waiting(options)
    return _pipelines(options) if options.pipelines else _jobs(options)


def _jobs(options: argparse.Namespace) -> int:
    total: Counter[str] = Counter()
    with ExitStack() as stack:
        server = stack.enter_context(SeaweedFS()) if options.store else None
        for seed in range(options.first, options.first + options.seeds):
            place = InStore(server) if server else None
            report = scenarios.kills(seed=seed, everything=True, place=place, chooses_size=options.auto)
            finding = report.finding
            total.update(report.faults)
            total.update(missing=finding.missing, doubled=finding.doubled)
            total["other"] += finding.strange + finding.out_of_order + finding.miscounted
            faults = dict(report.faults)
            print(f"seed={seed} {faults} retried={report.retried} lost={report.lost} {finding}", flush=True)
    print(
        f"chaos seeds={options.seeds} kills={total['kills']} pauses={total['pauses']} "
        f"redis_restarts={total['redis_restarts']} missing={total['missing']} doubled={total['doubled']}"
    )
    return 1 if total["missing"] or total["doubled"] or total["other"] else 0


def _pipelines(options: argparse.Namespace) -> int:
    total: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.seeds):
        report = pipelines.kills(seed=seed)
        total.update(report.faults)
        total["problems"] += len(report.problems)
        print(f"seed={seed} {dict(report.faults)} {report.problems or 'clean'}", flush=True)
    print(
        f"chaos_pipelines seeds={options.seeds} kills={total['kills']} pauses={total['pauses']} "
        f"redis_restarts={total['redis_restarts']} problems={total['problems']}"
    )
    return 1 if total["problems"] else 0


def _waiting(options: argparse.Namespace) -> int:
    total: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.seeds):
        report = waiting.kills(seed=seed)
        finding = report.finding
        total.update(report.faults)
        total.update(missing=finding.missing, doubled=finding.doubled, paid_twice=report.paid_twice)
        total.update(calls=report.calls, twice_unanswered=report.twice_unanswered)
        total["other"] += finding.strange + finding.out_of_order + finding.miscounted
        print(
            f"seed={seed} {dict(report.faults)} calls={report.calls} paid_twice={report.paid_twice} "
            f"twice_unanswered={report.twice_unanswered} {finding}",
            flush=True,
        )
    print(
        f"chaos_waiting seeds={options.seeds} kills={total['kills']} service_kills={total['service_kills']} "
        f"pauses={total['pauses']} redis_restarts={total['redis_restarts']} calls={total['calls']} "
        f"twice_unanswered={total['twice_unanswered']} missing={total['missing']} doubled={total['doubled']} "
        f"paid_twice={total['paid_twice']}"
    )
    return 1 if total["missing"] or total["doubled"] or total["paid_twice"] or total["other"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
