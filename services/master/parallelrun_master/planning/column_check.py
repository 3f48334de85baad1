"""Checks that a table has the columns which its steps need, before it is cut; or each mini-batch would fail by itself.

If there is such a step, a child process reads the first files as a worker does (`parallelrun_worker.tables.columns`).
Where any row may have columns that no other has, as in JSON lines, they can't be checked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.plan import InputPlan
from parallelrun_core.mltable.steps import Filter, KeepColumns
from parallelrun_core.path_rule import PathRule

_NEEDS: Final = (Filter, KeepColumns)
"""Exactly these: DropColumns is a KeepColumns, but needs no column."""
_WAIT_S: Final = 0.05


def check_columns(plan: InputPlan, rule: PathRule | None = None) -> Iterator[None]:
    """Check; yields while there is nothing to do but wait. Files that can't be read are reported when they are needed.

    Args:
        rule: which files may be opened; None: any.

    Raises:
        InvalidInput: none of the first files has a column that a step needs.
    """
    is_known = plan.read is not None and plan.read.has_fixed_columns and bool(plan.sample)
    if not is_known or not any(type(step) in _NEEDS for step in plan.steps):
        return
    command = [sys.executable, "-P", "-m", "parallelrun_worker.tables.columns"]
    given: bytes | None = json.dumps(bounded_record(plan, rule)).encode()
    said: bytes | None = None
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        try:
            while said is None:
                try:
                    said, _ = child.communicate(given, timeout=_WAIT_S)
                except subprocess.TimeoutExpired:
                    given = None  # it has been sent, or will be
                    yield
        finally:
            child.kill()
    if said and child.returncode == 0:
        raise InvalidInput(f"input {plan.name!r}: {said.decode(errors='replace')}")


def bounded_record(plan: InputPlan, rule: PathRule | None) -> dict[str, Any]:
    """A plan as processes of a master read it, which have its rights."""
    record: dict[str, Any] = msgspec.to_builtins(plan)
    return record if rule is None else {**record, "may_open": rule.readable}
