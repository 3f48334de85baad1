"""Words of unknown origin, such as messages of errors and names of files, made fit for people's eyes and tools.

Whoever writes such words where people read them passes them through here: reports, logs, events, the command line.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_SUSPECT: Final = re.compile(r"[^ -~]")
_SUSPECT_IN_LINES: Final = re.compile(r"[^\n\t -~]")
_HARMFUL: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Categories of characters that control a terminal, change the direction of text, break lines, or are none at all."""
_FORMULA: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # noqa: RUF001 - spreadsheets read both widths


def visible(text: str, *, lines: bool = True) -> str:
    r"""Escape what can't be seen in a text: `\x1b` instead of the escape character.

    Args:
        lines: line breaks and tabs stay as they are.
    """
    return (_SUSPECT_IN_LINES if lines else _SUSPECT).sub(_shown, text)


def _shown(suspect: re.Match[str]) -> str:
    char = suspect[0]
    return char.encode("unicode_escape").decode("ascii") if unicodedata.category(char) in _HARMFUL else char


def in_one_line(text: str) -> str:
    """Make a text visible, with a blank for each run of white space: it can't look like a line of somebody else."""
    return visible(" ".join(text.split()), lines=False)


def indented(text: str) -> str:
    """Make a text visible, where it may have several lines: those after the first can't be taken for ours."""
    return visible(text.replace("\r\n", "\n")).replace("\n", "\n    ")


def csv_cell(text: str) -> str:
    """A quoted cell of a CSV file with this text, visible and in one line; a spreadsheet takes it for no formula.

    For words only: a number is written as it is, also when it is negative.
    """
    line = in_one_line(text)
    return '"' + ("'" if _is_formula(line) else "") + line.replace('"', '""') + '"'


def _is_formula(line: str) -> bool:
    return line.startswith(_FORMULA)
