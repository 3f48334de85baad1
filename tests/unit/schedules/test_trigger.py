"""Triggers as documents have them, and which of them are refused with which words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from parallelrun_core.errors import InvalidInput
from parallelrun_core.schedules.trigger import as_document, described, occurrences, parsed_trigger, read_trigger
from parallelrun_core.schedules.zones import windows_zones, zone_named

AT_ONE = {"hours": 1, "minutes": 0}
MADE = datetime(2026, 11, 23, 4, 5, 6, tzinfo=UTC)  # a Monday


def due(document: dict[str, Any], count: int = 3) -> list[str]:
    trigger = read_trigger(document, created=MADE)
    again = parsed_trigger(as_document(trigger))
    assert again == trigger
    moments = islice(occurrences(again, created=MADE).after(MADE - timedelta(seconds=1)), count)
    return [each.strftime("%m-%dT%H:%M:%S") for each in moments]


def recurrence(frequency: str, interval: int, **fields: Any) -> dict[str, Any]:
    return {"type": "recurrence", "frequency": frequency, "interval": interval, **fields}


@pytest.mark.parametrize(
    "document, expected",
    [
        (recurrence("minute", 90), ["11-23T04:05:06", "11-23T05:35:06", "11-23T07:05:06"]),
        (
            recurrence("Hour", 5, schedule={"hours": [], "minutes": []}),
            ["11-23T04:05:06", "11-23T09:05:06", "11-23T14:05:06"],
        ),
        (recurrence("day", 2), ["11-23T04:05:06", "11-25T04:05:06", "11-27T04:05:06"]),
        (
            recurrence("day", 1, schedule={"hours": [4, 3], "minutes": 10}),
            ["11-23T04:10:00", "11-24T03:10:00", "11-24T04:10:00"],
        ),
        (recurrence("day", 1, schedule={"hours": 7}), ["11-23T07:05:00", "11-24T07:05:00", "11-25T07:05:00"]),
        (
            recurrence("week", 2, schedule=AT_ONE | {"week_days": ["Sunday", "monday"]}),
            ["11-29T01:00:00", "12-07T01:00:00", "12-13T01:00:00"],
        ),
        (recurrence("week", 1, schedule=AT_ONE), ["11-30T01:00:00", "12-07T01:00:00", "12-14T01:00:00"]),
        (
            recurrence("month", 1, schedule=AT_ONE | {"month_days": 31}),
            ["12-31T01:00:00", "01-31T01:00:00", "03-31T01:00:00"],
        ),
        (recurrence("month", 3, schedule=AT_ONE), ["02-23T01:00:00", "05-23T01:00:00", "08-23T01:00:00"]),
        (
            recurrence("month", 1, schedule=AT_ONE | {"week_days": "tuesday"}),
            ["11-24T01:00:00", "12-01T01:00:00", "12-08T01:00:00"],
        ),
        (
            recurrence("day", 1, start_time="2026-11-25T10:00:00-04:00"),
            ["11-25T14:00:00", "11-26T14:00:00", "11-27T14:00:00"],
        ),
        (
            recurrence("day", 1, start_time="2026-11-20 10:00:00", time_zone="Tokyo Standard Time"),
            ["11-24T01:00:00", "11-25T01:00:00", "11-26T01:00:00"],
        ),
        (recurrence("hour", 1, end_time="2026-11-23T05:30:00"), ["11-23T04:05:06", "11-23T05:05:06"]),
        (
            {"type": "cron", "expression": "0 9 * * *", "time_zone": "Pacific Standard Time"},
            ["11-23T17:00:00", "11-24T17:00:00", "11-25T17:00:00"],
        ),
        (
            {"type": "Cron", "expression": "0 9 * * *", "time_zone": "asia/kolkata"},
            ["11-24T03:30:00", "11-25T03:30:00", "11-26T03:30:00"],
        ),
    ],
)
def test_when_a_trigger_is_due(document: dict[str, Any], expected: list[str]) -> None:
    assert due(document) == expected


@pytest.mark.parametrize(
    "document, words",
    [
        ("daily", "/trigger: must be a mapping with a type, which is cron or recurrence"),
        ({"type": "event"}, "/trigger/type: there is no trigger 'event' (cron or recurrence)"),
        ({"type": "cron"}, "/trigger/expression: this field is required"),
        (
            {"type": "cron", "expression": "0 9 * *"},
            "/trigger/expression: a cron expression has five fields, and this one 4",
        ),
        (
            {"type": "cron", "expression": "0 24 * * *"},
            "/trigger/expression: '24' is not one of the hours, which are 0 to 23",
        ),
        ({"type": "cron", "expression": "0 9 * * 1#2"}, "/trigger/expression: '1#2' can't be read as days of the week"),
        ({"type": "cron", "expression": "*/0 9 * * *"}, "/trigger/expression: '*/0', of the minutes, has a step of 0"),
        (
            {"type": "cron", "expression": "30-10 9 * * *"},
            "/trigger/expression: '30-10', of the minutes, ends before it begins",
        ),
        ({"type": "cron", "expression": "0 0 31 2 *"}, "/trigger: nothing is ever due"),
        (
            {"type": "cron", "expression": "0 9 * * *", "timezone": "UTC"},
            "/trigger/timezone: unknown field (did you mean 'time_zone'?)",
        ),
        ({"type": "cron", "expression": "0 9 * * *", "time_zone": "Europe/Berlim"}, "did you mean 'Europe/Berlin'?"),
        (
            {"type": "cron", "expression": "0 9 * * *", "time_zone": "../../etc/passwd"},
            "/trigger/time_zone: there is no time zone",
        ),
        (
            {"type": "cron", "expression": "0 9 * * *", "time_zone": "Europe"},
            "/trigger/time_zone: there is no time zone 'Europe'",
        ),
        (
            {"type": "cron", "expression": "0 9 * * *", "start_time": "soon"},
            "/trigger/start_time: 'soon' can't be read as a time",
        ),
        (
            {"type": "cron", "expression": "0 9 * * *", "end_time": "2020-01-01"},
            "/trigger/end_time: it is before the start",
        ),
        (recurrence("year", 1), "/trigger/frequency: must be 'minute', 'hour', 'day', 'week' or 'month'"),
        (recurrence("day", 0), "/trigger/interval: must be greater than or equal to 1, not 0"),
        (recurrence("day", 1, schedule={"hours": 24}), "/trigger/schedule/hours: must be 0 to 23, not 24"),
        (
            recurrence("hour", 1, schedule={"minutes": 5}),
            "/trigger/schedule/minutes: it has no meaning with the frequency hour",
        ),
        (recurrence("week", 1, schedule={"month_days": 5}), "/trigger/schedule/month_days: it has no meaning"),
        (recurrence("month", 1, schedule={"month_days": 5, "week_days": "monday"}), "days of the week are given, too"),
        (recurrence("week", 1, schedule={"week_days": ["moonday"]}), "/trigger/schedule/week_days/0"),
    ],
)
def test_what_is_wrong_with_a_trigger_is_said_with_its_place(document: Any, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_trigger(document, created=MADE)

    assert words in str(refused.value)


@pytest.mark.parametrize("name", sorted(windows_zones()))
def test_each_name_of_the_reference_is_a_zone(name: str) -> None:
    assert datetime(2026, 7, 1, tzinfo=zone_named(name)).utcoffset() is not None


def test_utc_needs_no_data_of_time_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parallelrun_core.schedules.zones.available_timezones", set)
    monkeypatch.setattr("parallelrun_core.schedules.zones._zone", lambda _: None)

    assert zone_named("utc") is UTC
    with pytest.raises(InvalidInput, match="the server has no data of time zones"):
        zone_named("Europe/Berlin")


@pytest.mark.parametrize(
    "document, words",
    [
        (recurrence("day", 1), "every day (UTC)"),
        (recurrence("day", 2), "every 2 days (UTC)"),
        (
            recurrence("week", 1, schedule={"hours": [4, 5], "week_days": ["monday"]}),
            "every week; hours: 4, 5; week days: monday (UTC)",
        ),
        (
            {"type": "cron", "expression": "0 1 * * *", "time_zone": "Europe/Berlin", "end_time": "2125-01-01"},
            "0 1 * * * (Europe/Berlin), until 2125-01-01",
        ),
    ],
)
def test_a_trigger_is_told_in_words(document: dict[str, Any], words: str) -> None:
    assert described(read_trigger(document, created=MADE)) == words
