"""Values of inputs that are numbers, strings or truth values."""

from __future__ import annotations

import math
import re
from typing import Final

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")


def of_type(kind: str | None, value: bool | int | float | str) -> bool | int | float | str:
    """A literal in its declared type: `1e-4`, for example, is a string in YAML 1.1.

    Args:
        kind: `string`, `number`, `integer` or `boolean`; None: the value is returned unchanged.

    Raises:
        ValueError, OverflowError: it isn't of that type.
    """
    match kind, value:
        case ("string", _):
            return str(value)
        case ("boolean", bool()) | (None, _):
            return value
        case ("boolean", str()) if value.lower() in {"true", "false"}:
            return value.lower() == "true"
        case ("boolean", _) | (_, bool()):
            raise ValueError
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value) else float(value)
    if not math.isfinite(value) or (kind == "integer" and value != int(value)):
        raise ValueError
    return int(value) if kind == "integer" else value
