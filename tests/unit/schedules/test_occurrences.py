"""When cron expressions and recurrences are due, where clocks are put forward and back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice, pairwise, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.schedules.cron import Cron, parse_cron
from parallelrun_core.schedules.occurrences import (
    COUNTED,
    IntervalOccurrences,
    WallClockOccurrences,
    count_between,
    latest_of,
    next_of,
)
from parallelrun_core.schedules.wall_clock import wall_time
from parallelrun_core.schedules.zones import zone_named

MINUTE = timedelta(minutes=1)

CHANGES = [
    ("UTC", "2026-03-29T00:00"),
    ("Europe/Berlin", "2026-03-28T12:00"),
    ("Europe/Berlin", "2026-10-24T12:00"),
    ("Pacific Standard Time", "2026-03-07T12:00"),
    ("Pacific Standard Time", "2026-10-31T12:00"),
    ("Australia/Lord_Howe", "2026-04-03T18:00"),  # half an hour
    ("Australia/Lord_Howe", "2026-10-02T18:00"),
    ("America/Sao_Paulo", "2018-11-03T12:00"),  # at midnight, which then isn't there
    ("America/Sao_Paulo", "2018-02-17T12:00"),
    ("Africa/Cairo", "2026-10-29T00:00"),
    ("America/St_Johns", "2010-11-06T12:00"),  # at a minute past midnight
    ("Pacific/Apia", "2011-12-29T00:00"),  # the 30th of December wasn't there
    ("Asia/Kolkata", "2026-10-25T00:00"),
]  # fmt: skip
"""Zones, and times in UTC half a day or so before their clocks change."""


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def clock(expression: str, zone: str) -> WallClockOccurrences:
    return WallClockOccurrences(parse_cron(expression), zone_named(zone), at("2000-01-01T00:00"), None)


def minute_by_minute(cron: Cron, zone: tzinfo, since: datetime, until: datetime) -> Iterator[datetime]:
    """What is due after `since` and not after `until`, found by looking at the wall at each minute."""
    times = {(each.hour, each.minute) for each in cron.times()}
    moment, shown = since - timedelta(days=2), set[datetime]()
    before = wall_time(moment - MINUTE, zone)
    while moment <= until:
        wall = wall_time(moment, zone)
        step = before + MINUTE
        passed = set[datetime]()  # what the wall shows now, and what it has just jumped over
        while step <= wall:
            passed.add(step)
            step += MINUTE
        if wall < before:
            passed.add(wall)
        fresh = {wall} if cron.is_hourly else passed - shown
        if moment > since and any(cron.has(each.date()) and (each.hour, each.minute) in times for each in fresh):
            yield moment
        shown |= passed
        before, moment = wall, moment + MINUTE


def fields(low: int, high: int, most: int) -> st.SearchStrategy[str]:
    numbers = st.lists(st.integers(low, high), min_size=1, max_size=most, unique=True)
    return st.one_of(st.just("*"), numbers.map(lambda some: ",".join(map(str, some))))


EXPRESSIONS = st.tuples(
    fields(0, 59, 3),
    st.one_of(fields(0, 23, 4), fields(0, 3, 2)),
    st.one_of(st.just("*"), fields(1, 31, 20)),
    st.just("*"),
    st.one_of(st.just("*"), fields(0, 6, 3)),
).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(change=st.sampled_from(CHANGES), expression=EXPRESSIONS, ahead=st.integers(0, 1500))
def test_what_is_due_is_what_one_sees_on_the_wall(change: tuple[str, str], expression: str, ahead: int) -> None:
    zone, begin = change
    since = at(begin) + ahead * MINUTE
    until = since + timedelta(hours=30)
    due = clock(expression, zone)
    expected = list(minute_by_minute(parse_cron(expression), due.zone, since, until))

    assert list(takewhile(lambda each: each <= until, due.after(since))) == expected
    assert latest_of(due, since, until) == (expected[-1] if expected else None)
    assert count_between(due, since, until) == min(COUNTED, sum(each < until for each in expected))


def test_a_time_that_clocks_jump_over_is_due_when_they_do() -> None:
    due = clock("30 2 * * *", "Europe/Berlin")

    assert list(islice(due.after(at("2026-03-28T12:00")), 2)) == [at("2026-03-29T01:00"), at("2026-03-30T00:30")]


def test_times_that_clocks_jump_over_together_are_due_once() -> None:
    due = clock("0,15,30,45 2,3 * * *", "Europe/Berlin")

    first = list(islice(due.after(at("2026-03-29T00:00")), 3))
    assert first == [at("2026-03-29T01:00"), at("2026-03-29T01:15"), at("2026-03-29T01:30")]


def test_a_time_that_clocks_show_twice_is_due_the_first_time() -> None:
    due = clock("30 1 * * *", "America/New_York")

    assert list(islice(due.after(at("2026-11-01T00:00")), 2)) == [at("2026-11-01T05:30"), at("2026-11-02T06:30")]


def test_what_is_due_in_every_hour_is_due_in_each_hour_that_passes() -> None:
    due = clock("30 * * * *", "America/New_York")
    autumn = list(islice(due.after(at("2026-11-01T04:00")), 4))
    spring = list(islice(due.after(at("2026-03-08T05:00")), 4))

    assert {later - earlier for each in (autumn, spring) for earlier, later in pairwise(each)} == {timedelta(hours=1)}


def test_a_day_that_is_not_there_is_due_when_it_is_passed_over() -> None:
    due = clock("0 9 30 12 *", "Pacific/Apia")

    assert next_of(due, at("2011-12-01T00:00")) == at("2011-12-30T10:00")  # the midnight that begins the 31st


def test_equal_distances_do_not_depend_on_clocks() -> None:
    due = IntervalOccurrences(at("2026-03-28T00:00"), timedelta(hours=7), None)

    assert next_of(due, at("2026-03-28T00:00") - MINUTE) == at("2026-03-28T00:00")
    assert next_of(due, at("2026-03-28T00:00")) == at("2026-03-28T07:00")
    assert next_of(due, at("2026-01-01T00:00")) == at("2026-03-28T00:00")
    assert latest_of(due, at("2026-03-28T00:00"), at("2027-03-28T00:00")) == at("2027-03-27T21:00")


def test_nothing_is_due_after_the_end_nor_before_the_beginning() -> None:
    begin, end = at("2026-11-23T06:00"), at("2026-11-23T08:00")
    hourly = WallClockOccurrences(parse_cron("0 * * * *"), UTC, begin, end)
    equal = IntervalOccurrences(begin, timedelta(hours=1), end)

    for due in (hourly, equal):
        assert [each.hour for each in due.after(at("2026-11-01T00:00"))] == [6, 7, 8]
        assert latest_of(due, begin, at("2027-11-01T00:00")) == end


@pytest.mark.parametrize(
    "expression, since, due",
    [
        ("0 0 29 2 *", "2097-01-01T00:00", "2104-02-29T00:00"),  # 2100 is no leap year
        ("0 0 29 feb mon", "2026-11-23T00:00", "2027-02-01T00:00"),  # one of both, as in any crontab
        ("*/20 9-17/4 * jan,mar mon-fri", "2026-11-23T00:00", "2027-01-01T09:00"),
        ("5/20 * * * *", "2026-11-23T00:06", "2026-11-23T00:25"),
        ("0 0 * * 7", "2026-11-23T00:00", "2026-11-29T00:00"),
        ("0 0 * * fri-sun", "2026-11-28T12:00", "2026-11-29T00:00"),
        ("15 16 * * Monday", "2026-11-23T16:15", "2026-11-30T16:15"),
    ],
)
def test_which_expressions_mean_what(expression: str, since: str, due: str) -> None:
    assert next_of(clock(expression, "UTC"), at(since)) == at(due)


def test_what_is_never_due_is_found_out() -> None:
    assert next_of(clock("0 0 30 2 *", "UTC"), at("2026-11-23T00:00")) is None
