"""Kinds of errors: the type of the exception, and the line of the user's code at which it was raised.

Messages name the file, the key or the value at which something happened, so each of them would be a kind of its own.
"""

from __future__ import annotations

import re
from typing import Final

from parallelrun_core.wire.outcome import Failure

Kind = tuple[str, ...]

_FRAME = re.compile(r'^[ |]*File "([^"\n]+)", line (\d+)', re.MULTILINE)
_TYPE = re.compile(r"[\w.]+(?=:|$)")
_PARTICULARS = re.compile(r"""'[^'\n]*'|"[^"\n]*"|\S*/\S*|\d+""")
_MAX_TEXT = 200
_WORDS: Final[dict[str, str]] = {
    "RUN_TIMEOUT": "run() took too long",
    "LOAD_TIMEOUT": "loading the data took too long",
    "OOM_KILLED": "the memory ran out",
    "WORKER_BROKEN": "the entry script gave up its worker",
    "GPU_OUT_OF_MEMORY": "the memory of the GPU ran out",
    "INPUT_UNREADABLE": "the input can't be read",
    "INPUT_CHANGED": "the input has changed",
    "OUTPUT_UNWRITABLE": "the output can't be written",
    "NODE_LOST": "nodes were lost",
    "EXITED": "the worker exited",
    "SIGNAL": "the worker was killed",
    "BAD_RETURN": "run() returned what is no list of rows",
}


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


def cause_of(failure: Failure) -> Kind:
    """Failures with equal causes are alike: in their kind, and in what their messages have in common."""
    return *kind_of(failure), normalized(failure.message) if exception_of(failure) else ""


def exception_of(failure: Failure) -> str:
    """The type of the exception that a try has failed with, as in `ValueError`; empty: the script has raised none."""
    if failure.category not in ("RUN_EXCEPTION", "INIT_EXCEPTION", "GPU_OUT_OF_MEMORY"):
        return ""
    match = _TYPE.match(failure.message)
    return match[0] if match else ""


def short_place(traceback: str) -> str:
    """The innermost line of the user's code, as in `score.py:17`; empty: none of it is."""
    match = _FRAME.match(place_of(traceback))
    return f"{match[1]}:{match[2]}" if match else ""


def normalized(message: str) -> str:
    """The first line of a message, with `…` for names, paths and numbers: what messages of one kind have in common."""
    return _PARTICULARS.sub("…", message.partition("\n")[0])


def in_words(category: str, exception: str, place: str) -> str:
    """Return what has gone wrong, in a few words: `ValueError in score.py:17`, `the memory ran out`.

    Args:
        exception, place: as `exception_of` and `short_place` have them.
    """
    if exception and category != "GPU_OUT_OF_MEMORY":
        return f"{exception} in {place}" if place else exception
    return _WORDS.get(category, category)
