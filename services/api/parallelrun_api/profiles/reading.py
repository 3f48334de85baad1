"""Reads the profiles that the workers of a job have written. Scripts can write them, too, so all of it is checked."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from parallelrun_api.profiles.sums import ProfileSum, WorkerProfile
from parallelrun_api.views.files import ServedFolder

_SUFFIX: Final = ".profile.json"
_OF_PSTATS: Final = ".profile"
_MOST_BYTES: Final = 1 << 20
"""Of one: a fifth of that is usual."""
_MOST_BYTES_OF_ALL: Final = 32 << 20
_SCHEMA: Final = 1
_PROFILE: Final = msgspec.json.Decoder(WorkerProfile)


class WorkerTime(NamedTuple):
    """The profiled part of a worker's time."""

    node: str
    process: str
    total_s: float


class Profiles(NamedTuple):
    """The measurements of a job's workers."""

    sum: ProfileSum
    workers: list[WorkerTime]
    left_out: int
    """Profiles that aren't in it: there are too many, or they can't be read."""


def read_profiles(served: ServedFolder, *, node: str, process: str) -> Profiles:
    """Sum up the profiles below logs/sys/node.

    Args:
        node, process: only of this node, only of workers of this name; empty: of all.
    """
    total, workers, left_out, remaining_bytes = ProfileSum(), list[WorkerTime](), 0, _MOST_BYTES_OF_ALL
    paths = [entry.path for entry in served.files()]
    converted = {path.removesuffix(_SUFFIX) for path in paths if path.endswith(_SUFFIX)}
    for path in paths:
        name = path.removesuffix(_SUFFIX if path.endswith(_SUFFIX) else _OF_PSTATS)
        of_node, _, of_process = name.partition("/")
        if name == path or node not in ("", of_node) or process not in ("", of_process):
            continue
        if not path.endswith(_SUFFIX):
            left_out += name not in converted  # one of an earlier release, for viewers of pstats
            continue
        most = min(_MOST_BYTES, remaining_bytes)
        text = served.head(path, most + 1)
        if len(text) > most:
            text = b""
        remaining_bytes -= len(text)
        profile = _decoded(text)
        try:
            if profile is not None:
                total.add(profile)
                workers.append(WorkerTime(of_node, of_process, profile.total_s))
        except ValueError:
            profile = None
        left_out += profile is None
    return Profiles(total, workers, left_out)


def _decoded(text: bytes) -> WorkerProfile | None:
    try:
        profile = _PROFILE.decode(text)
    except msgspec.DecodeError:  # also while a worker writes it
        return None
    return profile if profile.schema == _SCHEMA else None
