"""Findings on failures: items that were lost with others, timeouts that are too tight, and errors that come again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec.structs import replace

from parallelrun_core.adviser.advice import AdviceFinding, Change
from parallelrun_core.adviser.evidence import DONE, Ints
from parallelrun_core.adviser.findings.case import Case, Guide
from parallelrun_core.figures import counted, duration, percent

_MARGIN: Final = 3.0
"""A timeout is to be so many times the longest `run()` that succeeds."""
_MOST_SHOWN: Final = 5
_FEW: Final = 0.05
"""Of all mini-batches: with so few, their inputs are more likely to be at fault than the timeout."""
_MANY_ARE_LATE: Final = (
    "Give run() more time, or find out what these mini-batches wait for (a stack of each thread is in "
    "logs/user/stderr)."
)
_FEW_ARE_LATE: Final = (
    "Find out what these few wait for (a stack of each thread is in logs/user/stderr), or divide their inputs. If they "
    "only need longer than all others, give run() more time."
)
_APART: Final = "Run the items of a mini-batch that fails apart (on_failure: isolate), or use mini_batch_size: {size}."
_SMALLER: Final = "Use smaller mini-batches (mini_batch_size: {size}): fewer items are lost with one that is bad."
_DEATHS: Final = ("EXITED", "SIGNAL", "OOM_KILLED")


def findings_of(case: Case) -> Iterator[AdviceFinding]:
    """Timeouts first: they explain themselves."""
    tries, categories = case.evidence.tries, case.evidence.categories
    failed = tries.status != DONE
    if not failed.any():
        return
    yield from _whole_mini_batches(case)
    is_timeout = np.array([name == "RUN_TIMEOUT" for name in categories])[tries.category] & failed
    if is_timeout.any():
        yield from _timeouts(case, np.flatnonzero(is_timeout))
    others = failed & ~is_timeout
    if others.any():
        yield from _errors(case, np.flatnonzero(others))


def _whole_mini_batches(case: Case) -> Iterator[AdviceFinding]:
    """Items that were lost with others of their mini-batch: at least one of each was at fault, so at most all others
    would have had rows."""
    tries, schedule = case.evidence.tries, case.schedule
    failed = (tries.status[schedule.last] != DONE) & (schedule.items > 1)
    if not case.settings.fails_whole or not failed.any():
        return
    lost = int(schedule.items[failed].sum())
    savable, mini_batches = case.count(lost - int(failed.sum())), schedule.ids[failed]
    size = "1" if case.settings.unit == "files" else "rows:1"
    if not case.settings.has_several_in_flight:
        change = Change(text=_APART.format(size=size), set={"on_failure": "isolate"})
    else:  # whose items can't be run apart
        change = Change(text=_SMALLER.format(size=size), set={"mini_batch_size": size} if size == "1" else {})
    yield AdviceFinding(
        id="whole_mini_batches",
        severity="severe",
        saves="risk",
        title=f"Mini-batches fail as a whole: up to {savable} of these {case.count(lost)} items would have been kept.",
        evidence=[f"{case.count(len(mini_batches))} mini-batches failed, each perhaps for one of its items"],
        change=change,
        mini_batches=[int(each) for each in mini_batches[:_MOST_SHOWN]],
    )


def _timeouts(case: Case, timed_out: Ints) -> Iterator[AdviceFinding]:
    tries, schedule, limit = case.evidence.tries, case.schedule, case.settings.run_invocation_timeout_s
    done = tries.run_s[tries.status == DONE]
    ids = np.unique(tries.mini_batch[timed_out])
    is_late = np.isin(schedule.ids, ids)
    ended_done = tries.status[schedule.last] == DONE
    lost = int((is_late & ~ended_done).sum())
    # Of one that never ended within the timeout, nobody knows more than that it takes longer.
    needed = np.where(is_late & ~ended_done, np.maximum(schedule.work, limit), schedule.work)
    durations = needed + schedule.fixed_s + np.where(is_late, 0.0, schedule.lost)
    predicted = schedule.seconds(durations) - schedule.seconds_of_replacing
    longest = max(float(done.max()) if len(done) else 0.0, limit)
    new = int(np.ceil(_MARGIN * longest))
    mini_batches = [int(each) for each in ids[:_MOST_SHOWN]]
    spent = float(tries.elapsed_s[timed_out].sum())
    late = case.count(len(ids))
    evidence = [
        f"{case.count(len(timed_out))} tries of {late} mini-batches were stopped after {duration(limit)}",
        f"they took {percent(spent / max(1e-9, float(tries.elapsed_s.sum())))} of the workers' time",
    ]
    if len(done):
        near = float(np.quantile(done, 0.99))
        evidence.append(f"of those that succeeded, 99 % took less than {duration(near)}")
    change = Change(
        text=_FEW_ARE_LATE if len(ids) < _FEW * schedule.count else _MANY_ARE_LATE,
        set={"run_invocation_timeout": str(new)},
    )
    title = f"run() is stopped after {duration(limit)}, before it is done: {late} mini-batches timed out."
    faster = list(
        case.faster(
            "timeout_too_tight",
            predicted,
            guide=Guide.TIMEOUTS,
            title=title,
            evidence=evidence,
            change=change,
            mini_batches=mini_batches,
        )
    )
    if not lost:
        yield from faster
    else:
        risk = AdviceFinding(
            id="timeout_too_tight", severity="severe", saves="risk", guide=Guide.TIMEOUTS, title=title,
            evidence=evidence, change=change, mini_batches=mini_batches,
        )  # fmt: skip
        sentences = [f"{case.count(lost)} mini-batches have failed for it", *evidence]
        yield replace(faster[0] if faster else risk, saves="risk", severity="severe", evidence=sentences)


def _errors(case: Case, failed: Ints) -> Iterator[AdviceFinding]:
    tries, schedule, names = case.evidence.tries, case.schedule, case.evidence.categories
    counts = np.bincount(tries.category[failed], minlength=len(names))
    commonest = names[int(counts.argmax())]
    has_failed = np.isin(schedule.ids, tries.mini_batch[failed])
    ended_done = tries.status[schedule.last] == DONE
    has_died = commonest in _DEATHS
    predicted = schedule.seconds(schedule.work + schedule.fixed_s)
    if has_died:
        predicted -= schedule.seconds_of_replacing
    mini_batches = [int(each) for each in np.unique(tries.mini_batch[failed])[:_MOST_SHOWN]]
    repaired, never = int((has_failed & ended_done).sum()), int((has_failed & ~ended_done).sum())
    spent = float(tries.elapsed_s[failed].sum()) / max(1e-9, float(tries.elapsed_s.sum()))
    evidence = [
        f"{case.count(len(failed))} tries failed, most with {commonest}: {percent(spent)} of the workers' time",
        f"{case.count(repaired)} mini-batches succeeded in a later try, {case.count(never)} in none",
    ]
    if has_died:
        title = f"Workers die ({commonest}) and are replaced: init() runs again, and so do their mini-batches."
        inits = sum(init.is_done for init in case.evidence.inits)
        evidence.append(f"init() ran {counted(inits, 'time')} for {len(schedule.lanes):,} places of workers")
        change = Change(text="See logs/user/error.txt for how they end, and logs/user/stderr for what they say last.")
    elif repaired:
        title = f"{percent(spent)} of the workers' time goes into tries that fail at first ({commonest})."
        change = Change(text="See logs/user/error.txt, and mend what fails at first.")
    else:
        title = f"{percent(spent)} of the workers' time goes into tries that fail, again and again ({commonest})."
        text = "See logs/user/error.txt. A later try never helps: until that is mended, do with one."
        change = Change(text=text, set={"run_max_try": "1"})
    name = "workers_die" if has_died else "retries"
    yield from case.faster(name, predicted, title=title, evidence=evidence, change=change, mini_batches=mini_batches)
