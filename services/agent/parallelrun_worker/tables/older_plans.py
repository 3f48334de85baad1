"""Records of `inputs.json` that a release wrote which left it to each reader what follows from the steps."""

from __future__ import annotations

from typing import Any

_KEEPING = ("keep_columns", "drop_columns", "convert_column_types", "extract_columns_from_partition_format")
_COUNTING = ("take", "skip")
_WITH_ARROW = ("parquet", "delta_lake")


def completed(plan: dict[str, Any]) -> dict[str, Any]:
    """The record with what newer ones have: the answers of `InputPlan.freeze_answers`."""
    if plan.get("tail") is not None or plan["kind"] == "files":
        return plan
    names = [step["step"] for step in plan["steps"]]
    counts = [number for number, name in enumerate(names) if name in _COUNTING]
    drops = [number for number, name in enumerate(names) if name not in _KEEPING + _COUNTING]
    return {
        **plan,
        "libraries": ["pandas", "pyarrow"] if plan["kind"] in _WITH_ARROW else ["pandas"],
        "keeping": [number for number, name in enumerate(names) if name in _KEEPING],
        "tail": counts[0] if counts and drops and counts[-1] > drops[0] else len(names),
    }
