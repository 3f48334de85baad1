"""Counts what this process asks of stores: requests, bytes, how long they took, and what went wrong.

The libraries repeat a request by themselves where a store has too much to do, and obstore doesn't say so. Its repeats
are one request here, which took longer.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from dataclasses import dataclass, field
from time import perf_counter
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self

from parallelrun_core.storage.objects.address import address_of
from parallelrun_core.storage.objects.trouble import Missing, NameTaken, StoreError, Throttled

Operation = Literal["list", "head", "get", "put", "upload", "copy", "delete"]
"""What a request is for; `upload`: to begin, complete or abort one in parts. Each part is a `put`."""

BOUNDS: Final = (
    0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7,
    1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""Seconds. The first bucket has what took no longer than the first one, the last what took longer than the last."""
OTHERS: Final = "others"
_MOST_STORES: Final = 64
_ANSWERS: Final = (Missing, NameTaken)
"""What was asked was answered."""


class RequestCounts(NamedTuple):
    """The requests to one store by one operation, since some time."""

    requests: int = 0
    bytes: int = 0
    """Bytes of objects: received, or sent."""
    failures: int = 0
    """Calls that failed in the end; that an object isn't there, or is, is an answer."""
    throttled: int = 0
    """Requests among them to which the store said that it has too much to do."""
    retries: int = 0
    seconds: float = 0.0
    """All calls took, together."""
    longest_s: float = 0.0
    """Since the process began."""
    latencies: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    """Number of calls took so long, for each of `BOUNDS`, and longer."""

    def minus(self, before: RequestCounts) -> RequestCounts:
        latencies = tuple(now - then for now, then in zip(self.latencies, before.latencies, strict=True))
        return RequestCounts(
            self.requests - before.requests, self.bytes - before.bytes, self.failures - before.failures,
            self.throttled - before.throttled, self.retries - before.retries, self.seconds - before.seconds,
            self.longest_s, latencies,
        )  # fmt: skip

    def plus(self, other: RequestCounts) -> RequestCounts:
        latencies = tuple(one + more for one, more in zip(self.latencies, other.latencies, strict=True))
        return RequestCounts(
            self.requests + other.requests, self.bytes + other.bytes, self.failures + other.failures,
            self.throttled + other.throttled, self.retries + other.retries, self.seconds + other.seconds,
            max(self.longest_s, other.longest_s), latencies,
        )  # fmt: skip

    def latency_s(self, share: float) -> float:
        """Return how long this share of the calls took at most, as well as the buckets tell; 0 if there was none."""
        rank, below = share * sum(self.latencies), 0
        for number, count in enumerate(self.latencies):
            if count and below + count >= rank:
                low = BOUNDS[number - 1] if number else 0.0
                high = min(BOUNDS[number], self.longest_s) if number < len(BOUNDS) else self.longest_s
                return low + max(0.0, high - low) * (rank - below) / count
            below += count
        return 0.0


@dataclass(slots=True)
class _Meter:
    requests: int = 0
    bytes: int = 0
    failures: int = 0
    throttled: int = 0
    retries: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0
    latencies: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))

    def read(self) -> RequestCounts:
        return RequestCounts(
            self.requests, self.bytes, self.failures, self.throttled, self.retries, self.seconds, self.longest_s,
            tuple(self.latencies),
        )  # fmt: skip


Reading = dict[tuple[str, Operation], RequestCounts]
"""By store (its bucket, container, datastore or server) and operation."""

_METERS: Final[dict[tuple[str, Operation], _Meter]] = {}
_STORES: Final[set[str]] = set()
_LOCK: Final = threading.Lock()


def reading() -> Reading:
    """Return what this process has asked so far."""
    with _LOCK:
        return {labels: meter.read() for labels, meter in _METERS.items()}


def since(before: Reading) -> Reading:
    """Return what it has asked since an earlier reading; without what it hasn't."""
    requests = {labels: now.minus(before.get(labels, RequestCounts())) for labels, now in reading().items()}
    return {labels: each for labels, each in requests.items() if each.requests or each.retries}


def asked_again(url: str, operation: Operation, times: int = 1) -> None:
    """A request had to be repeated, or is going to be; each time counts as a request of its own when it is sent."""
    store = address_of(url).store
    with _LOCK:
        _meter(store, operation).retries += times


class metered:
    """`with metered(url, "get") as call:` counts a call to a store, and notes how long it took and how it ended.

    Whoever makes the call sets what isn't usual. Many threads may do this at once; it takes less than 5 µs.
    """

    __slots__ = ("_began", "_operation", "_store", "bytes", "requests", "retries")

    def __init__(self, url: str, operation: Operation) -> None:
        self._store, self._operation = address_of(url).store, operation
        self.requests = 1
        """That the call is; 0: it was none, and nothing is counted."""
        self.bytes = 0
        self.retries = 0

    def __enter__(self) -> Self:
        self._began = perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.requests:
            return
        seconds = perf_counter() - self._began
        with _LOCK:
            meter = _meter(self._store, self._operation)
            meter.requests += self.requests
            meter.bytes += self.bytes
            meter.retries += self.retries
            meter.seconds += seconds
            meter.longest_s = max(meter.longest_s, seconds)
            meter.latencies[bisect_left(BOUNDS, seconds)] += 1
            if isinstance(error, StoreError) and not isinstance(error, _ANSWERS):
                meter.failures += 1
                meter.throttled += isinstance(error, Throttled)


def _meter(store: str, operation: Operation) -> _Meter:
    if store not in _STORES:
        if len(_STORES) < _MOST_STORES:
            _STORES.add(store)
        else:
            store = OTHERS
    meter = _METERS.get((store, operation))
    if meter is None:
        meter = _METERS[store, operation] = _Meter()
    return meter
