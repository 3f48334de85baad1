"""How a service's process is told to end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from parallelrun_core.service.process import StopSignal


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_came_before_is_not_waited_for(number: int) -> None:
    stop = StopSignal()
    signal.raise_signal(number)
    signal.raise_signal(number)
    assert stop.came
    for _ in range(3):
        stop.wait()


def test_a_signal_ends_the_waiting() -> None:
    stop = StopSignal()
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
    stop.wait()
    assert stop.came


def test_without_one_waiting_ends_after_its_time() -> None:
    stop = StopSignal()
    stop.wait(0.01)
    assert not stop.came
