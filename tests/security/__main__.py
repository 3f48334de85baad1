"""Plays every attack against every kind of cluster that can be had here: `make attack`, or

python -m tests.security --target embedded --group stores

A line for each attack and target; the last one says `attack attempts=N held=N`. The exit code is 1 if any is open.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Iterable

from tests.security import targets
from tests.security.attack import Attack
from tests.security.playing import HELD, OPEN, Played, attacks_by_module, play_all
from tests.security.target import Missing


def main(arguments: list[str]) -> int:
    """Play; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.security")
    parser.add_argument("--target", action="append", choices=targets.names(), help="only this one; can be repeated")
    groups = attacks_by_module()
    parser.add_argument("--group", action="append", choices=groups, help="only those of this module; can be repeated")
    parser.add_argument("--attack", default="", metavar="WORD", help="only attacks with this word in their names")
    given = parser.parse_args(arguments)
    chosen = [each for group in given.group or groups for each in groups[group] if given.attack in each.name]
    counts = Counter[str]()
    for name in given.target or targets.names():
        counts += play_on(name, chosen)
    attempts = counts[HELD] + counts[OPEN]
    print(f"attack attempts={attempts} held={counts[HELD]}")
    return int(counts[OPEN] > 0)


def play_on(name: str, chosen: list[Attack]) -> Counter[str]:
    """Play these attacks on one target; returns how often each thing has become of them."""
    try:
        with targets.reach(name) as target:
            return tally(play_all(target, chosen))
    except Missing as missing:
        print(f"none  {name:<10}  can't be had here: {missing}", flush=True)
        return Counter()


def tally(outcomes: Iterable[Played]) -> Counter[str]:
    """Print a line for each attack; returns how often each thing has become of them."""
    counts = Counter[str]()
    for played in outcomes:
        print(played, flush=True)
        counts[played.outcome] += 1
    return counts


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)  # containers don't end with those who started them
    sys.exit(main(sys.argv[1:]))
