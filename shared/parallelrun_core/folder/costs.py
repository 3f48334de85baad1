"""The cost of a job in its folder: a term log, `costs`, with a total for each stay of a node in the job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.folder.records import Reopening
from parallelrun_core.folder.term_log import read_term_log
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.costs import Spent, in_usd

NAME: Final = "costs"
decode_costs: Final = msgspec.json.Decoder(list[Spent]).decode


def spent_usd(folder: Path) -> float:
    """Return what a job has spent, in US dollars, as far as its leaders have made it durable; damaged ranges are
    passed over.

    Raises:
        NewerSchema: a newer release has written it.
    """
    nano: dict[str, int] = {}
    for _, _, raw in read_term_log(folder, NAME, on_damage=lambda _: None):
        for spent in decode_costs(raw):
            nano[spent.spender] = max(spent.nano, nano.get(spent.spender, 0))
    return in_usd(sum(nano.values()))


def budget_usd(spec: JobSpec, reopenings: Sequence[Reopening]) -> float:
    """Return the budget of a job that counts, in US dollars: the one that it was resumed with last, or else the
    submitted one; 0: it has none."""
    later = [each.budget_usd for each in reopenings if each.budget_usd is not None]
    return later[-1] if later else spec.budget.usd if spec.budget is not None else 0.0
