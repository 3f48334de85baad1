"""The whole example: prepare the texts, start the stand-in of a service, run the job on two nodes, and count the calls.

The last lines on stdout are the output, its rows, and the calls that the service has answered and refused.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from prepare import prepare

from parallelrun.stand_in import StandIn

HERE = Path(__file__).parent
OUT = HERE / "out"
PER_MINUTE = 900


def main() -> int:
    """Run everything; returns the exit code."""
    prepare()
    service = StandIn(per_minute=PER_MINUTE)
    url = f"{service.in_background()}/v1"
    job = subprocess.run(
        [
            sys.executable, "-P", "-m", "parallelrun", "run", str(HERE / "job.yml"), "--limit", str(HERE / "limit.yml"),
            "--set", f"environment_variables.API_URL={url}", "--nodes", "2", "--output", str(OUT), "--overwrite",
        ],
        stdout=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    if job.returncode == 0:
        rows = len((OUT / "vectors.jsonl").read_text().splitlines())
        print(f"output: {OUT / 'vectors.jsonl'}")
        print(f"rows: {rows}")
        print(f"calls: {service.stats['answered']} answered, {service.stats['refused']} refused")
    return job.returncode


if __name__ == "__main__":
    sys.exit(main())
