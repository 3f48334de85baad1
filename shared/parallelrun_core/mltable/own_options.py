"""Options of read steps in jobs of our own form, where they differ from those in an MLTable file."""

from __future__ import annotations

from typing import Final

_OWN: Final[dict[str, dict[str, str]]] = {
    "read_delimited": {"on_mismatch": "keep", "inference": "exact", "columns_by": "name"},
    "read_json_lines": {"on_mismatch": "keep"},
}


def with_own_options(step: object) -> object:
    """A step as a job of our own form has it: with its own options said, unless the job says others."""
    entry = {step: None} if isinstance(step, str) else step
    if not isinstance(entry, dict) or len(entry) != 1:
        return step
    name, options = next(iter(entry.items()))
    if name not in _OWN or not isinstance(options, dict | None):
        return step
    return {name: {**_OWN[name], **(options or {})}}
