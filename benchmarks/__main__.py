"""`python -m benchmarks [--full] [NAME…]`: each prints `NAME key=value …` last, and keeps it in results/NAME.json."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import traceback
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

BENCHMARKS = ("noop",)
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Run the benchmarks that were asked for; 0 when all ran clean."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(BENCHMARKS)} (all when none)")
    parser.add_argument("--full", action="store_true", help="at full size")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there is: {', '.join(BENCHMARKS)}")
    return max(_run(name, full=options.full) for name in options.names or BENCHMARKS)


def _run(name: str, *, full: bool) -> int:
    try:
        figures = import_module(f"benchmarks.{name}").main(full=full)
    except Exception:
        traceback.print_exc()
        print(f"{name} failed=1")
        return 1
    RESULTS.mkdir(exist_ok=True)
    record = {
        "benchmark": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "cpus": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "full": full,
        **figures,
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    print(name, " ".join(f"{key}={value}" for key, value in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
