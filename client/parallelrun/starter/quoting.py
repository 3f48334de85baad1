"""Texts of a user as a job file has them."""

from __future__ import annotations

import json
import re
from typing import Final

from parallelrun.starter.texts import READING_STEPS

_PLAIN: Final = re.compile(r"(?:[A-Za-z_/]|\.{1,2}/)[\w./-]*")
_WORDS: Final = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")


def quoted(text: str) -> str:
    """A text as a job file has it: with quotes, unless it can't be taken for anything else without them."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else json.dumps(text, ensure_ascii=False)


def reading_step(where: str) -> str:
    """The step that reads a table with this name."""
    ending = where.rpartition(".")[2].lower()
    return READING_STEPS.get(ending, READING_STEPS["csv"])
