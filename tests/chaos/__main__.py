"""The long run: `python -m tests.chaos --seeds N`."""

from __future__ import annotations

import argparse
from collections import Counter

from tests.chaos import scenarios


def main() -> int:
    """Run the scenario of kills for many seeds; returns 0 if no row was missing or doubled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first", type=int, default=1)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.seeds):
        report = scenarios.kills(seed=seed, everything=True)
        finding = report.finding
        total.update(report.faults)
        total.update(missing=finding.missing, doubled=finding.doubled)
        total["other"] += finding.strange + finding.out_of_order + finding.miscounted
        print(f"seed={seed} {dict(report.faults)} retried={report.retried} lost={report.lost} {finding}", flush=True)
    print(
        f"chaos seeds={options.seeds} kills={total['kills']} pauses={total['pauses']} "
        f"redis_restarts={total['redis_restarts']} missing={total['missing']} doubled={total['doubled']}"
    )
    return 1 if total["missing"] or total["doubled"] or total["other"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
