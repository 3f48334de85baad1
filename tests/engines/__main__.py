"""`python -m tests.engines docker`: the main job on an engine's nodes, and chaos; ends with one line that says it all.

Where there is an installation for the engine (`deployed`), that is tried first; where jobs may name images, these
follow (`pythons`). The exit code is 0 if the bytes are the same, no row is missing or doubled, no try was charged, each
image was what it is, and nothing is left of the installation.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.engines import pythons, targets
from tests.engines.acceptance import first_run_s, prepared_digits, rows_here, rows_there
from tests.engines.chaos import NODES, Report, kills
from tests.engines.deployed import installation
from tests.engines.deployed.install import tried
from tests.engines.nodes import Provisioned
from tests.engines.target import Missing, Target


def main(arguments: list[str]) -> int:
    """Bring an engine up, test, and print; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.engines")
    parser.add_argument("engine", choices=targets.names())
    parser.add_argument("--seconds", type=float, default=60, help="how long the chaos lasts")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    try:
        with targets.reach(given.engine) as target:
            is_clean = _installs(target)
            return _test(target, given.seconds, given.seed) or int(not is_clean)
    except Missing as missing:
        print(f"engine {given.engine} can't be had here: {missing}", file=sys.stderr)
        return 2


def _installs(target: Target) -> bool:
    """Whether what operators install there works, and leaves nothing; true where there is no such thing."""
    made = installation(target.name)
    if made is None:
        return True
    with made() as there:
        report = tried(there)
    print(report)
    return not report.left


def _test(target: Target, seconds: float, seed: int) -> int:
    with tempfile.TemporaryDirectory(prefix="pr-engine-") as home:
        folder = Path(home)
        folder.chmod(0o755)
        digits = prepared_digits(folder)
        here = rows_here(digits, folder)
        with Provisioned(target, most=NODES, inputs=(folder,)) as there:
            with there.watched() as idle:
                is_same = rows_there(there, digits) == here
            first_s = first_run_s(there)
            images = pythons.tried(there) if target.has_images else None
            report = kills(there, seed=seed, seconds=seconds)
    if images is not None:
        print(images)
    print(report)
    print(line(target.name, report, is_same=is_same, first_s=first_s, idle_percent=idle.percent))
    is_fine = is_same and (images is None or images.is_clean)
    return int(not (is_fine and report.finding.is_clean and not report.charged and report.is_full_again))


def line(name: str, report: Report, *, is_same: bool, first_s: float, idle_percent: float) -> str:
    """What the test ends with."""
    finding = report.finding
    return (
        f"engine {name} same_bytes={'yes' if is_same else 'no'} first_run_s={first_s:.1f} kills={report.kills} "
        f"missing={finding.missing} doubled={finding.doubled} charged={report.charged} "
        f"idle_percent={idle_percent:.1f}"
    )


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)  # nodes don't end with those who asked for them
    sys.exit(main(sys.argv[1:]))
