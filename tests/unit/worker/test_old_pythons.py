"""A job's environment may have an older Python than ours: lists of files run on 3.8, as the reference's scripts do."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

WORKER = Path(__file__).parents[3] / "services" / "agent" / "parallelrun_worker"


@pytest.mark.parametrize("source", sorted(path.name for path in WORKER.glob("*.py")))
def test_the_worker_says_nothing_that_python_3_8_does_not_know(source: str) -> None:
    tree = ast.parse((WORKER / source).read_text(encoding="utf-8"), feature_version=(3, 8))
    annotated = any(isinstance(node, ast.FunctionDef | ast.AnnAssign) for node in ast.walk(tree))
    futures = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "__future__"
               for alias in node.names}  # fmt: skip
    assert not annotated or "annotations" in futures  # otherwise they are evaluated, and `list[str]` is an error
    strict = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "strict"]
    assert not strict, "zip(strict=…) needs 3.10"
