"""The Redis server: the one that an embedded cluster starts, or one that somebody else runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from parallelrun.embedded.redis_server import find_binary, version_of
from parallelrun.errors import ClusterFailed
from parallelrun_core.wire.finding import Check, Finding, Place, bad, ok, warn

_CLOCK_S: Final = 2.0
_AS_IN: Final = "write it as in redis://:PASSWORD@HOST:6379/0, with %2F for a slash in the password"


def binary(place: Place) -> Iterator[Finding]:
    """Return what `parallelrun run` and `parallelrun up` would start."""
    if place.redis_url:
        return
    try:
        path = find_binary()
    except ClusterFailed as error:
        yield bad("there is no Redis server to start", str(error).rstrip("."))
    else:
        yield ok(f"{path} {'.'.join(map(str, version_of(path)))} is started for clusters on this machine")


def server(place: Place) -> Iterator[Finding]:
    if not place.redis_url:
        return
    from parallelrun_core.store.connection import CONNECTION_ERRORS, without_password
    from parallelrun_core.store.examination import examine

    try:
        shown_url = without_password(place.redis_url)
        examined = examine(place.redis_url, timeout_s=2.0)
    except ValueError:  # its text may have a part of the password
        yield bad("REDIS_URL is not the URL of a Redis server", _AS_IN)
        return
    except CONNECTION_ERRORS as error:
        yield bad(f"{shown_url} can't be used: {error}", "start it, mend REDIS_URL, or unset it to use an embedded one")
        return
    yield ok(f"{shown_url} answers: version {examined.version}")
    for problem in examined.problems:
        yield bad(problem, "change the configuration of this server")
    if examined.is_open:
        yield bad(
            "its default user is open: whoever reaches it can do anything, without a password",
            "set requirepass or an ACL, and name the password in REDIS_URL",
        )
    else:
        yield ok("nobody gets in without a password")
    if abs(examined.ahead_s) > _CLOCK_S:
        yield warn(f"its clock is {examined.ahead_s:+.1f} s ahead of ours", "use NTP on both machines")
    else:
        yield ok("its clock agrees with ours")


CHECKS: Final[tuple[Check, ...]] = (binary, server)
