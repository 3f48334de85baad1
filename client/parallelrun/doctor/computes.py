"""The computes of a cluster, by what its provisioner says of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from parallelrun.doctor.server import client_of
from parallelrun_core.computes.kinds import MANUAL
from parallelrun_core.wire.finding import Check, Finding, Place, bad, ok, warn

if TYPE_CHECKING:
    from parallelrun.models import Compute


def engines(place: Place) -> Iterator[Finding]:
    """Every compute, if there are any."""
    if not place.url:
        return
    from parallelrun.errors import ParallelRunError

    try:
        with client_of(place) as client:
            computes = client.computes.list()
    except ParallelRunError:
        return  # said by `server`, or an earlier release
    for compute in computes:
        yield finding_of(compute)


def finding_of(compute: Compute) -> Finding:
    status = compute.status
    if status is None and compute.type == MANUAL:
        return ok(f"compute {compute.name}: its nodes are started by people")
    if status is None:
        todo = f"start parallelrun-provisioner with --kinds {compute.type} and the server's --root and --redis-url"
        return bad(f"no provisioner has said anything of compute {compute.name}: it gets no nodes", todo)
    message = f"compute {compute.name} ({compute.type}): {status.ready} of its nodes ready, {status.wanted} wanted"
    if status.why:
        later = f"; it is tried again at {status.next_attempt}" if status.next_attempt else ""
        todo = f"mend that, then `parallelrun compute update {compute.name}` has it tried again at once"
        return warn(f"{message}; {status.why}{later}", todo)
    return ok(message)


CHECKS: Final[tuple[Check, ...]] = (engines,)
