"""The whole matrix: `python -m tests.damage [--kinds part,decisions]`."""

from __future__ import annotations

import argparse

from tests.cluster import Cluster
from tests.damage.cases import all_of, play


def main() -> int:
    """Play each case; returns 0 if no job hung, and each completed exactly, at the latest after it was resumed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", default="")
    options = parser.parse_args()
    cases = exact = hung = named = 0
    with Cluster(leader_s=1.0, lease_s=2.0) as cluster:
        for case in all_of(options.kinds):
            verdict = play(cluster, case)
            print(f"{case} {verdict}", flush=True)
            cases += 1
            exact, hung = exact + verdict.is_exact, hung + verdict.is_hung
            named += bool(verdict.said)
    print(f"damage cases={cases} exact={exact} hung={hung} named={named}")
    return 0 if cases == exact and not hung else 1


if __name__ == "__main__":
    raise SystemExit(main())
