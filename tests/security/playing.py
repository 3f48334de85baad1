"""Plays attacks against a target, and says what became of each."""

from __future__ import annotations

import pkgutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module

import httpx

from tests.security import attacks
from tests.security.attack import Attack, NotPlayable, Target

HELD, OPEN, NOT_PROMISED = "held", "OPEN", "n/a"
_RECOVERS_WITHIN_S = 30.0


@dataclass(frozen=True)
class Played:
    """What became of one attack."""

    target: str
    attack: str
    outcome: str
    """One of the words above."""
    why: str = ""
    """What it got through to, or why nobody promises to hold it."""
    took_s: float = 0.0

    def __str__(self) -> str:
        line = f"{self.outcome:<5} {self.target:<10}  {self.attack}"
        if self.outcome == NOT_PROMISED:
            return f"{line} ({self.why})"
        return f"{line}: {self.why}" if self.why else line


def attacks_by_module() -> dict[str, list[Attack]]:
    """Those of every module in `attacks/`."""
    names = [module.name for module in pkgutil.iter_modules(attacks.__path__)]
    return {name: import_module(f"{attacks.__name__}.{name}").ATTACKS for name in names}


def all_attacks() -> list[Attack]:
    """Those of all modules, in the order in which they are played."""
    return [attack for of_module in attacks_by_module().values() for attack in of_module]


def play_all(target: Target, which: Iterable[Attack]) -> Iterator[Played]:
    """Play attacks one after another. One that can't be played to its end, or after which the cluster no longer
    answers, was not held.
    """
    for attack in which:
        if attack.apart_only and not target.is_apart:
            yield Played(target.name, attack.name, NOT_PROMISED, "workers are the agent's user here; SECURITY.md")
            continue
        if attack.own_only and not getattr(target, "shows_only_own", False):
            yield Played(target.name, attack.name, NOT_PROMISED, "people see the jobs of all here; docs/people.md")
            continue
        if attack.shared_only and target.name == "embedded":
            yield Played(target.name, attack.name, NOT_PROMISED, "it is the machine of whoever asks for this")
            continue
        began = time.monotonic()
        try:
            evidence = attack.play(target) or _harm(target)
        except NotPlayable as reason:
            yield Played(target.name, attack.name, NOT_PROMISED, str(reason))
            continue
        except Exception as error:  # whatever it is: it is no answer
            evidence = f"it could not be played to its end: {type(error).__name__}: {error}"
        took_s = time.monotonic() - began
        yield Played(target.name, attack.name, OPEN if evidence else HELD, " ".join(evidence.split())[:1000], took_s)


def _harm(target: Target) -> str:
    """What is wrong with a cluster after an attack: it must answer, and have a node that works."""
    deadline = time.monotonic() + _RECOVERS_WITHIN_S
    headers = {"Authorization": f"Bearer {target.token}"}
    with httpx.Client(base_url=target.url, headers=headers, timeout=10, trust_env=False) as client:
        while True:
            try:
                nodes = client.get("/v1/nodes").raise_for_status().json()["items"]
                if any(node["state"] == "ready" for node in nodes):
                    return ""
                trouble = f"its nodes: {nodes}"
            except (httpx.HTTPError, ValueError) as error:
                trouble = repr(error)
            if time.monotonic() > deadline:
                return f"the cluster has not recovered within {_RECOVERS_WITHIN_S:.0f} s: {trouble}"
            time.sleep(0.1)  # the API has no event for nodes
