"""Checks the paths of an input against its partition format, before anything is cut."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.mltable.partition_format import format_of_paths, match_partition
from parallelrun_core.wire.data_warnings import DataWarning

_KIND: Final = "partition_format"


def path_warnings(plan: InputPlan) -> Iterator[DataWarning]:
    """Yield what the values of the paths become that a user may not want, as far as the first files tell.

    Raises:
        InvalidInput: none of them fits the partition format, and each must.
    """
    if plan.partition is None or not plan.sample:
        return
    pattern, root = re.compile(plan.partition.pattern, re.DOTALL), os.fsencode(plan.root)
    names, first = ", ".join(plan.partition.names), plan.sample[0]
    if not any(match_partition(pattern, plan.partition.starts_above, os.fsencode(path), root) for path in plan.sample):
        event = f"no path of the first {len(plan.sample)} files fits the partition format of {names}"
        likely = format_of_paths([first], plan.root)
        remedy = f"this one fits {likely}" if likely else "a format is a path, with {name} for a part of it"
        if plan.needs_fitting_paths:
            raise InvalidInput(f"input {plan.name!r}: {event}: {first!r}; {remedy}")
        yield DataWarning(_KIND, first, "", event, remedy)
    elif plan.read is not None and not (plan.needs_fitting_paths or plan.read.include_path_column or plan.keys):
        event = f"{names} are null: the format comes after the read step, and there is no column of paths"
        remedy = "as in Azure ML; include_path_column: true gives them their values, and so do partition_keys"
        yield DataWarning(_KIND, "", "", event, remedy)


def unfit_warning(plan: InputPlan, path: bytes, count: int) -> DataWarning:
    """Return the warning about files whose paths don't fit the partition format, which are one mini-batch."""
    event = f"the path doesn't fit the partition format, so {', '.join(plan.keys)} are None in its mini-batch"
    return DataWarning(_KIND, os.fsdecode(path), "", event, "", count, "file")
