"""Waits of a node's processes: pressure (PSI), and the limit on the CPUs of its cgroup."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from parallelrun_agent.node.cgroups import CGROUPS, PROC, counted, folders, is_root, read
from parallelrun_core.answers.nodes import NodePressure

RESOURCES: Final = ("cpu", "io", "memory")
_US = 1e-6
_NS = 1e-9


class Pressure(NamedTuple):
    """The pressure on one resource, as the kernel tells it (docs.kernel.org/accounting/psi.html)."""

    some_s: float
    """Seconds in which at least one process waited for it."""
    full_s: float
    """Seconds in which all processes waited that had something to do. Of CPUs, always 0 for a machine."""
    share: float
    """Share of the last minute in which at least one waited: 0 to 1."""


class Throttling(NamedTuple):
    """The limit on the CPUs of a cgroup."""

    limit: float
    """Number of CPUs."""
    periods: int
    """Number of periods, mostly of 0.1 s, have ended with nothing left to use."""
    throttled_s: float
    """For how long its threads had to wait then, all added up."""


class PressureReader:
    """Reads what the kernel counts: of the agent's cgroup where there is one of version 2, of the machine otherwise."""

    def __init__(self, proc: Path = PROC, cgroups: Path = CGROUPS) -> None:
        places = folders("cpu", proc, cgroups)
        cgroup = next((each for each in places if _pressure(each / "cpu.pressure") and not is_root(each)), None)
        self.of = "cgroup" if cgroup else "machine"
        """Whose pressure it is."""
        self._files = {
            name: cgroup / f"{name}.pressure" if cgroup else proc / "pressure" / name for name in RESOURCES
        }  # fmt: skip
        self._limited = next((each for each in _upwards(places, cgroups) if _limit(each)), None)

    def pressure(self, resource: str) -> Pressure | None:
        """Return the pressure on one of `RESOURCES`; None: this kernel doesn't measure it."""
        return _pressure(self._files[resource])

    def throttling(self) -> Throttling | None:
        """Return the throttling of the nearest cgroup that has a limit; None: none has had one when the agent began."""
        folder = self._limited
        limit = _limit(folder) if folder else None
        if folder is None or limit is None:
            return None
        text = read(folder / "cpu.stat")
        us, ns = counted(text, "throttled_usec"), counted(text, "throttled_time")
        return Throttling(limit, counted(text, "nr_throttled") or 0, us * _US if us is not None else (ns or 0) * _NS)

    def now(self) -> NodePressure | None:
        """Return what a heartbeat says of it; None: this kernel doesn't measure it."""
        cpu, io, memory = map(self.pressure, RESOURCES)
        if cpu is None or io is None or memory is None:
            return None
        return NodePressure(of=self.of, cpu=cpu.share, io=io.share, memory=memory.share)


def _pressure(path: Path) -> Pressure | None:
    """Parse `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, and the same for `full`, which need not be there."""
    totals, share = {"some": 0.0, "full": 0.0}, None
    for line in read(path).splitlines():
        kind, _, rest = line.partition(" ")
        fields = dict(each.partition("=")[::2] for each in rest.split())
        try:
            totals[kind] = int(fields["total"]) * _US
            share = float(fields["avg60"]) / 100 if kind == "some" else share
        except (KeyError, ValueError):
            return None
    return Pressure(totals["some"], totals["full"], share) if share is not None else None


def _upwards(places: list[Path], cgroups: Path) -> list[Path]:
    """These folders, each followed by those above it: the limit of any of them counts."""
    return [each for place in places for each in (place, *place.parents) if each.is_relative_to(cgroups)]


def _limit(folder: Path) -> float | None:
    """Return how many CPUs a cgroup may use; None: as many as there are."""
    quota, _, period = read(folder / "cpu.max").strip().partition(" ")  # version 2: "max 100000"
    if not period:
        quota, period = (read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None
