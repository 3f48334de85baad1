"""Docstrings have a subject, and names say what they hold: measured, so that both stay as they are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_WITHOUT_SUBJECT = re.compile(
    r"(The same|Of|That|What|Whether|As|Those|It|One|See|Which|Who|How|Where|When|With|From|In|At|And|Or|Not|Also)\b"
)
_SAYS_NOTHING = frozenset({
    "asked", "found", "given", "held", "kept", "known", "left", "made", "meant", "own", "said", "seen", "shown",
    "taken", "there", "told", "wanted", "what", "whose",
})  # fmt: skip
_MOST_DOCSTRINGS = 40
_MOST_NAMES = 60


def trees() -> Iterator[tuple[str, ast.Module]]:
    for top in ("client", "services", "shared"):
        for path in sorted((ROOT / top).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The docstrings of modules, classes, functions and attributes, as an editor shows them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef):
            for before, after in pairwise(node.body):
                if isinstance(before, ast.AnnAssign | ast.Assign) and isinstance(after, ast.Expr):
                    text = getattr(after.value, "value", "")
                    yield after.lineno, text.strip() if isinstance(text, str) else ""


def names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


@dataclass(frozen=True)
class Wording:
    """What there is to mend in the product, each with its file and line."""

    docstrings_without_subject: list[str]
    names_that_say_nothing: list[str]


@pytest.fixture(scope="module")
def wording() -> Wording:
    """The wording of all modules, each of which is parsed once."""
    result = Wording([], [])
    for path, tree in trees():
        result.docstrings_without_subject.extend(
            f"{path}:{line}: {text.splitlines()[0]}"
            for line, text in docstrings(tree)
            if _WITHOUT_SUBJECT.match(text) and not text.splitlines()[0].endswith("?")
        )
        result.names_that_say_nothing.extend(
            f"{path}:{line}: {name}" for line, name in names(tree) if name in _SAYS_NOTHING
        )
    return result


def test_docstrings_stand_alone(wording: Wording) -> None:
    without = wording.docstrings_without_subject
    assert len(without) <= _MOST_DOCSTRINGS, "begin with a verb or a noun:\n" + "\n".join(without)


def test_names_say_what_they_hold(wording: Wording) -> None:
    empty = wording.names_that_say_nothing
    assert len(empty) <= _MOST_NAMES, "name the value, not how it came:\n" + "\n".join(empty)
