"""Schedules, as they are shown."""

from __future__ import annotations

import time
from itertools import islice
from typing import Final

from parallelrun_api.views.presenters import type_of
from parallelrun_core.answers import schedules as answers
from parallelrun_core.answers.answer import answer_of, rfc3339
from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.schedules.records import FireRecord, Revision, rfc3339_of, utc_time
from parallelrun_core.schedules.store import ScheduleStore
from parallelrun_core.schedules.trigger import described, parsed_trigger
from parallelrun_core.service import telemetry
from parallelrun_core.wire.masking import Mask, masked_spec

log = telemetry.logger()

_NEXT: Final = 5


def schedule(store: ScheduleStore, name: str, revision: Revision) -> answers.Schedule:
    """A schedule.

    Raises:
        CorruptLog: its trigger can't be read.
    """
    last = next((fire for _, fire in store.fires(name).latest_first()), None)
    following = islice(revision.due().after(max(utc_time(time.time()), revision.since())), _NEXT)
    spec = revision.job.spec
    mask = Mask(spec)
    return answer_of(
        answers.Schedule,
        revision,
        name=name,
        enabled=revision.is_enabled,
        due=described(parsed_trigger(revision.trigger)),
        missed_runs=revision.missed,
        allow_overlap=revision.may_overlap,
        created=rfc3339(revision.made),
        modified=rfc3339(revision.at),
        revision=revision.number,
        next=[rfc3339_of(due) for due in following] if revision.is_enabled else [],
        last=fire_of(last) if last is not None else None,
        job=answers.ScheduledJob(
            name=str(spec.get("name", "")),
            type=type_of(revision.job),
            notes=[mask.printable(note) for note in revision.job.notes],
            spec=masked_spec(spec),
        ),
    )


def fire_of(fire: FireRecord) -> answers.Fire:
    return answer_of(answers.Fire, fire, outcome=fire.outcome.value, at=rfc3339(fire.at), job_id=fire.job_id or None)


def page(
    store: ScheduleStore, *, after: str, limit: int, owner: str | None = None
) -> tuple[list[answers.Schedule], str | None]:
    """Schedules whose names come after this one, and the last of them if there may be more.

    Args:
        owner: only those of this person; None: of everybody.
    """
    items: list[answers.Schedule] = []
    last = ""
    for name in store.names():
        if name <= after:
            continue
        if len(items) == limit:
            return items, last
        last = name
        try:
            revision = store.get(name)
            if owner in (None, revision.owner):
                items.append(schedule(store, name, revision))
        except (CorruptLog, NewerSchema, NotFound) as error:  # or it is just being made or deleted
            log.warning("schedule_unreadable", schedule=name, error=error.message)
    return items, None


def history(store: ScheduleStore, name: str, *, before: str, limit: int) -> tuple[list[answers.Fire], str | None]:
    """Return what became of times before one, the latest first, and where the next page begins if there is more.

    Raises:
        NotFound: there is no such schedule.
    """
    store.get(name)
    items: list[answers.Fire] = []
    last = ""
    for key, fire in store.fires(name).latest_first(before):
        if len(items) == limit:
            return items, last
        items.append(fire_of(fire))
        last = key
    return items, None
