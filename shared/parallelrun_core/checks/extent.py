"""Extent of a job before it runs, found out by the code that leaders have for it."""

from __future__ import annotations

from typing import Any

import msgspec

from parallelrun_core.checks.data_preview import Bounds, answer_of
from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec import JobSpec


class Extent(msgspec.Struct, kw_only=True):
    """The amount of a job, as a leader would cut its inputs."""

    mini_batches: int = 0
    files: int = 0
    rows: int = 0
    """Rows of tables in forms that know how many they have."""
    bytes: int = 0
    """Bytes of all files, estimated from a sample of them, and of tables."""
    largest_bytes: int = 0
    """Bytes of the largest mini-batch, about."""
    is_complete: bool = False
    """All inputs were listed; otherwise there are more."""
    is_staged: bool = False
    """Mini-batches are copied to the disks of the nodes before they run."""
    error: str = ""
    """The reason why it isn't known; empty: it is."""


class ExtentRequest(msgspec.Struct, kw_only=True, frozen=True):
    """A request of an extent, as the process reads it that finds it out."""

    spec: dict[str, Any]
    """A job spec as `job show` prints it."""
    listing_s: float
    """Seconds after which listing ends, wherever it is."""
    bounds: Bounds | None = None
    """None: whoever asks may read what this user may read."""


def extent_of(spec: JobSpec, *, timeout_s: float, listing_s: float, bounds: Bounds | None = None) -> Extent:
    """List and cut the inputs of a job on this machine, as its leader would. Nothing of the user's runs.

    Args:
        listing_s: seconds after which listing ends, wherever it is.
        bounds: of what is read for others.

    Raises:
        InvalidInput: an input can't be listed or cut.
        Unavailable: the process that does it has failed, or took longer than `timeout_s` seconds.
    """
    request = ExtentRequest(spec=spec.model_dump(mode="json"), listing_s=listing_s, bounds=bounds)
    answer = answer_of("parallelrun_master.planning.extent", msgspec.json.encode(request), timeout_s)
    extent = msgspec.json.decode(answer, type=Extent)
    if extent.error:
        raise InvalidInput.at("inputs", extent.error)
    return extent
