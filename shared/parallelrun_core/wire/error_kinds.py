"""Kinds of errors: the type of the exception, and the line of the user's code at which it was raised.

Messages name the file, the key or the value at which something happened, so each of them would be a kind of its own.
"""

from __future__ import annotations

import re

from parallelrun_core.wire.outcome import Failure

Kind = tuple[str, ...]

_FRAME = re.compile(r'^[ |]*File "([^"\n]+)", line (\d+)', re.MULTILINE)
_TYPE = re.compile(r"[\w.]+(?=:|$)")
_PARTICULARS = re.compile(r"""'[^'\n]*'|"[^"\n]*"|\S*/\S*|\d+""")
_MAX_TEXT = 200


def place_of(traceback: str) -> str:
    """The innermost line of the user's code, as in `File "score.py", line 3`; empty: the traceback has no line at all.

    Paths in the code are relative to it. If there is none, it is the innermost line of all.
    """
    frames = list(_FRAME.finditer(traceback))
    user_frames = [frame for frame in frames if not frame[1].startswith(("/", "<"))]
    innermost = (user_frames or frames)[-1:]
    return innermost[0][0].strip(" |") if innermost else ""


def kind_of(failure: Failure) -> Kind:
    """Failures with equal kinds are shown as one. Running out of memory can hit any line, so it is a kind by itself."""
    category, text = failure.category, failure.message.partition("\n")[0]
    if category in ("OOM_KILLED", "GPU_OUT_OF_MEMORY"):
        return (category,)
    if category == "SIGNAL":  # what follows the first sentence is how much memory the worker had
        return category, text.partition(". ")[0].rstrip(".")
    match = _TYPE.match(text)
    name = match[0] if match else ""
    if name.endswith("MemoryError"):
        return category, name
    place = place_of(failure.traceback)
    if name and place:
        return category, name, place
    if category in ("RUN_EXCEPTION", "INIT_EXCEPTION", "BAD_RETURN", "INPUT_UNREADABLE", "INPUT_CHANGED"):
        text = _PARTICULARS.sub("…", text)
    return category, text[:_MAX_TEXT]
