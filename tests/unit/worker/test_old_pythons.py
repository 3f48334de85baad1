"""A job's environment may have an older Python than ours: lists of files run on 3.8, as the reference's scripts do.

What such a Python says to it is in tests/integration/worker/test_old_pythons.py, where there is one.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path

import pytest

WORKER = Path(__file__).parents[3] / "services" / "agent" / "parallelrun_worker"
FOLDERS = (WORKER, WORKER / "rows", WORKER / "shims")
SOURCES = [path.relative_to(WORKER).as_posix() for folder in FOLDERS for path in folder.glob("*.py")]
TYPES = {name for name, value in vars(builtins).items() if isinstance(value, type)} | {"Callable", "Iterator"}
LATER = {"removeprefix", "removesuffix", "cache", "pairwise", "batched"}


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below that Python evaluates: neither annotations nor what is for type checkers alone."""
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        if isinstance(node, ast.If) and field == "body" and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from evaluated(child)


def is_later(node: ast.AST) -> bool:
    """Whether it is an expression that fails before 3.10: `list[str]`, `int | None`, zip(strict=…), or a newer name."""
    match node:
        case ast.Subscript(value=ast.Name(id=name)) | ast.BinOp(left=ast.Name(id=name), op=ast.BitOr()):
            return name in TYPES
        case ast.BinOp(right=ast.Name(id=name), op=ast.BitOr()):
            return name in TYPES
        case ast.keyword(arg="strict"):
            return True
        case ast.Attribute(attr=name):
            return name in LATER
    return False


@pytest.mark.parametrize("source", sorted(SOURCES))
def test_the_worker_says_nothing_that_python_3_8_does_not_know(source: str) -> None:
    tree = ast.parse((WORKER / source).read_text(encoding="utf-8"), feature_version=(3, 8))
    annotated = any(isinstance(node, ast.FunctionDef | ast.AnnAssign) for node in ast.walk(tree))
    futures = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "__future__"
               for alias in node.names}  # fmt: skip
    assert not annotated or "annotations" in futures  # otherwise they are evaluated, and `list[str]` is an error
    assert [ast.unparse(node) for node in evaluated(tree) if is_later(node)] == []


@pytest.mark.parametrize(
    "source",
    [
        "Entry = tuple[float, str]",
        "isinstance(x, OSError | ValueError)",
        "zip(a, b, strict=True)",
        "a.removeprefix('b')",
    ],
)
def test_what_python_3_8_does_not_know_is_found(source: str) -> None:
    assert any(map(is_later, evaluated(ast.parse(source))))
    assert not any(
        map(is_later, evaluated(ast.parse("if TYPE_CHECKING:\n    Entry = tuple[float]\nx: int | None = 1")))
    )
