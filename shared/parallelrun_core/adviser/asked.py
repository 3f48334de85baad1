"""The request for a curve: `nodes=1..64`. No numpy here: it is described to clients, too."""

from __future__ import annotations

import re
from typing import Final, Literal, cast

from parallelrun_core.errors import InvalidInput

Setting = Literal["nodes", "processes", "mini_batch_size"]
_DIGITS: Final[dict[Setting, int]] = {"nodes": 5, "processes": 4, "mini_batch_size": 8}
SETTINGS: Final = tuple(_DIGITS)
MOST_POINTS: Final = 64


def _form(setting: Setting, digits: int) -> str:
    number = rf"[1-9][0-9]{{0,{digits - 1}}}"
    return rf"{setting}[=:]{number}(\.\.{number}|(,{number}){{0,{MOST_POINTS - 1}}})"


PATTERN: Final = f"^({'|'.join(_form(*each) for each in _DIGITS.items())})$"
"""What `parse_what_if` takes, as a regular expression of ECMA 262."""
COMMON_QUESTIONS: Final = (
    "nodes=1,2,3,4,6,8,12,16,24,32,48,64",
    "processes=1,2,3,4,6,8,12,16,24,32",
    "mini_batch_size=1,2,5,10,20,50,100,200,500,1000",
)
"""The curves that the web page asks for (`studio/src/views/job/advice/what_if.tsx`)."""
_FORM: Final = "nodes=1..64, processes=2,4,8 or mini_batch_size=10..1000"


def parse_what_if(text: str) -> tuple[Setting, list[int]]:
    """A setting and the values that are asked for: up to 64 of a wider range, spread as on a logarithmic scale.

    Raises:
        InvalidInput: the text has another form than `nodes=1..64`.
    """
    name, values = [*re.split("[=:]", text, maxsplit=1), ""][:2]
    hint = f"such as {_FORM}"
    if name not in SETTINGS:
        raise InvalidInput.at("what_if", f"{name!r} is none of {', '.join(SETTINGS)}", hint)
    setting = cast(Setting, name)
    if not re.fullmatch(PATTERN, text):
        most = 10 ** _DIGITS[setting] - 1
        message = f"{values!r} is neither a range nor a list of up to {MOST_POINTS} numbers from 1 to {most:,}"
        raise InvalidInput.at("what_if", message, hint)
    first, dots, last = values.partition("..")
    if not dots:
        return setting, sorted({int(each) for each in values.split(",")})
    low, high = sorted((int(first), int(last)))
    steps = min(high - low, MOST_POINTS - 1)
    if steps == high - low:
        return setting, list(range(low, high + 1))
    return setting, sorted({round(low * (high / low) ** (step / steps)) for step in range(steps + 1)})
