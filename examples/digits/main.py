"""The whole example: prepare the data, run the job on two nodes, and check how many digits were recognized.

`make run` calls this. The last three lines on stdout are output, accuracy and logs.
"""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from pathlib import Path

from prepare import DATA, prepare

HERE = Path(__file__).parent
OUT = HERE / "out"


def main() -> int:
    """Run everything; returns the exit code."""
    if not DATA.is_dir():
        print("Preparing 1,797 scanned digits and a classifier", file=sys.stderr)
    prepare()
    command = [sys.executable, "-P", "-m", "parallelrun", "run", str(HERE / "job.yml"), "--output", str(OUT)]
    job = subprocess.Popen(
        [*command, "--nodes", "2", "--processes", "2", "--overwrite"], stdout=subprocess.PIPE, text=True
    )
    # Ctrl-C also reaches the command, which then cancels its job and cleans up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: job.terminate())
    said, _ = job.communicate()
    if job.returncode != 0:
        print(said, end="")
        return job.returncode
    places = dict(line.split(": ", 1) for line in said.splitlines())
    print(f"output: {places['output']}")
    print(f"accuracy: {accuracy(Path(places['output'])):.2f}")
    print(f"logs: {places['logs']}")
    return 0


def accuracy(output: Path) -> float:
    """The share of images whose digit was recognized. An image without a row counts as wrong."""
    with (DATA / "labels.csv").open(newline="") as file:
        truth = dict(csv.reader(file))
    rows = [line.split() for line in output.read_text().splitlines()]
    if len(rows) > len(truth):
        raise SystemExit(f"{len(rows)} rows for {len(truth)} images")
    return sum(truth.get(name) == digit for name, digit in rows) / len(truth)


if __name__ == "__main__":
    sys.exit(main())
