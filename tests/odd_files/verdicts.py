"""What became of a case: whether each of its rows came through with its value, or somebody was told."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from parallelrun_core.spec import JobSpec
from tests.odd_files.cases import Case
from tests.odd_files.reading import Outcome, azure_job, outcome_of, own_job
from tests.odd_files.values import is_same

IN_MEMORY: Final = "/dev/shm"
FORMS: Final[dict[str, Callable[[Path, dict[str, Any], str], JobSpec]]] = {"own": own_job, "azure": azure_job}


class Verdict(StrEnum):
    """What became of it."""

    EXACT = "exact"
    REFUSED = "refused"
    """Rows are missing, and their mini-batches, or the job, failed with the name of the file."""
    WARNED = "warned"
    """Values differ, and a warning names a file that has some."""
    SILENT = "silent"
    FALSE_ALARM = "false_alarm"
    """An ordinary file was refused or warned of."""


@dataclass
class Tally:
    """All verdicts, and how to make those again that must not be."""

    counts: Counter[str] = field(default_factory=Counter)
    by_kind: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def line(self) -> str:
        """The figures."""
        counts = self.counts
        return (
            f"odd_files tried={counts.total()} exact={counts['exact']} refused={counts['refused']} "
            f"warned={counts['warned']} silent={counts['silent']} false_alarms={counts['false_alarm']}"
        )


def judged(cases: Iterable[Case], forms: Iterable[str] = FORMS) -> Tally:
    """Read all cases in these forms."""
    tally = Tally()
    home = Path(tempfile.mkdtemp(prefix="odd-files-", dir=IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None))
    wanted = list(forms)
    try:
        for number, case in enumerate(cases):
            for form in wanted:
                is_backwards = bool(number % 2)
                folder = home / f"{number}-{form}"
                verdict, why = verdict_of(case, form, folder, is_backwards=is_backwards)
                shutil.rmtree(folder)  # memory is scarcer than a disk
                tally.counts[verdict] += 1
                tally.by_kind[case.kind, verdict] += 1
                if verdict in (Verdict.SILENT, Verdict.FALSE_ALARM):
                    tally.wrong.append(f"{verdict} {form} case {number}, {case.kind}: {case.label}: {why}")
    finally:
        shutil.rmtree(home)
    return tally


def verdict_of(case: Case, form: str, folder: Path, *, is_backwards: bool = False) -> tuple[Verdict, str]:
    """What becomes of a case, and why; arguments as those of `outcome_of`."""
    data = folder / "data"
    for name, content in case.files.items():
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas warns of dates that it parses one by one
        outcome = outcome_of(FORMS[form](data, case.step, case.size), folder / "job", is_backwards=is_backwards)
    verdict, why = _judged(case, outcome)
    if case.is_ordinary and (verdict is not Verdict.EXACT or outcome.warnings or outcome.refused):
        return Verdict.FALSE_ALARM, f"{verdict} {why} {outcome.warnings[:2]} {outcome.refused[:2]}"
    return verdict, why


def _judged(case: Case, outcome: Outcome) -> tuple[Verdict, str]:  # noqa: PLR0911 - one for each reason
    if outcome.is_job_refused:
        named = [name for name in case.files if os.path.basename(name) in outcome.refused[0]]
        is_named = bool(named) or "data" in outcome.refused[0]
        return (Verdict.REFUSED if is_named else Verdict.SILENT), outcome.refused[0][:300]
    if outcome.crashes:
        return Verdict.SILENT, f"crash: {outcome.crashes[0][:200]}"
    lost, wrong = _compared(case, outcome)
    untold = [name for name in lost if name not in outcome.refused_files and not _is_warned_of(name, outcome)]
    if untold:
        return Verdict.SILENT, f"rows of {untold} are missing; {outcome.refused[:1]} {outcome.warnings[:1]}"
    untold = [name for name in wrong if not _is_warned_of(name, outcome)]
    if untold:
        return Verdict.SILENT, f"{untold[0]}: {wrong[untold[0]]}; {outcome.warnings[:2]}"
    if case.litter and not any(name in text for name in case.litter for text in outcome.warnings):
        return Verdict.SILENT, f"nothing says that {sorted(case.litter)} were left out: {outcome.warnings[:1]}"
    if any(os.path.basename(name) not in " ".join(outcome.refused) for name in outcome.refused_files):
        return Verdict.SILENT, f"no message names {outcome.refused_files}: {outcome.refused[:1]}"
    if lost or outcome.refused:
        return Verdict.REFUSED, outcome.refused[0][:300] if outcome.refused else outcome.warnings[0]
    return (Verdict.WARNED if wrong else Verdict.EXACT), " ".join(outcome.warnings)[:300]


def _is_warned_of(name: str, outcome: Outcome) -> bool:
    return any(os.path.basename(name) in text for text in outcome.warnings)


def _compared(case: Case, outcome: Outcome) -> tuple[set[str], dict[str, str]]:
    """The files of which rows are missing, and those with another value, with the first one. Rows come in order."""
    expected = [(name, row) for name, rows in sorted(case.rows.items()) for row in rows]
    places = {str(row[case.names.index("id")]): number for number, (_, row) in enumerate(expected)}
    lost: set[str] = set()
    wrong: dict[str, str] = {}
    at = 0
    for got in outcome.rows:
        found = places.get(_id_of(got), -1)
        if found < at:  # no such row, or an earlier one again: it stands for the next one
            name = expected[min(at, len(expected) - 1)][0]
            wrong.setdefault(name, f"a row {str(got)[:150]} that is none of it; expected {expected[at : at + 1]}"[:400])
            at = min(at + 1, len(expected))
            continue
        lost |= {name for name, _ in expected[at:found]}
        name, row = expected[found]
        if trouble := _trouble(got, case, row):
            wrong.setdefault(name, trouble)
        at = found + 1
    lost |= {name for name, _ in expected[at:]}
    return lost, wrong


def _id_of(got: dict[str, Any]) -> str:
    cell = got.get("id")
    return str(int(cell)) if isinstance(cell, float) and cell == cell // 1 else str(cell)


def _trouble(got: dict[str, Any], case: Case, row: list[Any]) -> str:
    """What is wrong with a row that was read; empty if nothing is."""
    differing = [c for c, value in zip(case.names, row, strict=True) if c not in got or not is_same(got[c], value)]
    more = sorted(set(got) - set(case.names))
    if not differing and not more:
        return ""
    column = [*differing, *more][0]
    value = row[case.names.index(column)] if column in case.names else "no such column"
    return f"column {column}: {value!r:.60} became {got.get(column, 'missing')!r:.60}"


def main() -> int:
    """Print the figures, and each case that must not be."""
    from tests.odd_files.cases import cases

    seed = int(sys.argv[1]) if sys.argv[1:] else 1
    tally = judged(cases(seed, int(sys.argv[2]) if sys.argv[2:] else 1))
    for each in tally.wrong:
        print(each, file=sys.stderr)
    for kind in sorted({kind for kind, _ in tally.by_kind}):
        print(kind, {str(v): tally.by_kind[kind, v] for v in Verdict if tally.by_kind[kind, v]}, file=sys.stderr)
    print(tally.line())
    return bool(tally.wrong)


if __name__ == "__main__":
    sys.exit(main())
