"""Which connections may stay, by a clock that is moved by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from parallelrun_api.http.connections import ConnectionLimits, Connections, Moved

QUIET = Moved(received=0, is_owed=False, drained=0, unsent=0)


@dataclass(eq=False)
class Peer:
    """A connection of which a test says what it has moved."""

    now: Moved = QUIET
    ends: list[bool] = field(default_factory=list)

    def moved(self) -> Moved:
        return self.now

    def end(self, *, late: bool) -> None:
        self.ends.append(late)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def connections(clock: Clock) -> Connections:
    return Connections(ConnectionLimits(most=20, head_s=10, stall_s=20), clock)


def opened(connections: Connections, count: int = 1) -> list[Peer]:
    peers = [Peer() for _ in range(count)]
    for peer in peers:
        connections.opened(peer)
    return peers


def test_the_oldest_that_waits_makes_room(connections: Connections) -> None:
    peers = opened(connections, 23)

    assert [bool(peer.ends) for peer in peers] == [True] * 3 + [False] * 20
    assert len(connections) == 20
    assert connections.ended == {"crowded": 3}


def test_clients_with_a_token_make_room_last_and_requests_in_progress_never(connections: Connections) -> None:
    busy, caller, *strangers = opened(connections, 20)
    connections.works(busy)
    connections.waits(caller, is_known=True)

    opened(connections, 18)
    assert all(peer.ends for peer in strangers)
    assert not busy.ends + caller.ends


def test_when_all_are_at_work_a_new_one_is_turned_away(connections: Connections) -> None:
    for peer in opened(connections, 20):
        connections.works(peer)

    (new,) = opened(connections)
    assert new.ends == [False]
    assert connections.is_crowded
    assert connections.ended == {"full": 1}


def test_a_head_has_its_time_and_each_answer_gives_a_new_one(connections: Connections, clock: Clock) -> None:
    silent, answered = opened(connections, 2)
    clock.now += 6
    connections.works(answered)
    connections.waits(answered, is_known=False)
    clock.now += 5
    connections.sweep()
    assert (silent.ends, answered.ends) == ([True], [])

    clock.now += 6
    connections.sweep()
    assert answered.ends == [True]


def test_an_answer_may_take_any_time(connections: Connections, clock: Clock) -> None:
    (peer,) = opened(connections)
    connections.works(peer)
    for _ in range(100):
        connections.sweep()
        clock.now += 60
    assert peer.ends == []


def test_a_body_must_move_but_not_while_nobody_reads_it(connections: Connections, clock: Clock) -> None:
    peers = slow, quick, held_up = opened(connections, 3)
    for peer in peers:
        connections.works(peer)
        peer.now = Moved(0, is_owed=peer is not held_up, drained=0, unsent=0)
    for second in range(1, 30):
        connections.sweep()
        clock.now += 1
        slow.now = slow.now._replace(received=second * 400)
        quick.now = quick.now._replace(received=second * 600)

    assert [peer.ends for peer in peers] == [[True], [], []]
    assert connections.ended == {"body": 1}


def test_a_client_must_read_what_it_has_asked_for(connections: Connections, clock: Clock) -> None:
    peers = _, slow = opened(connections, 2)
    for peer in peers:
        connections.works(peer)
        peer.now = Moved(100, is_owed=False, drained=3, unsent=300_000)
    for second in range(80):
        connections.sweep()
        clock.now += 1
        if second % 10 == 0:
            slow.now = slow.now._replace(unsent=slow.now.unsent - 1)

    assert [peer.ends for peer in peers] == [[False], []]
    assert connections.ended == {"reader": 1}
