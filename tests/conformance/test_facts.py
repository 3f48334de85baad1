"""The tables of facts name tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    (page.name, *map(str.strip, row))
    for page in sorted((ROOT / "tests" / "conformance" / "facts").glob("*.md"))
    for row in re.findall(r"^\| (§[\d.]+) \| (.+?) \| (\S+) \|$", page.read_text(), re.MULTILINE)
]


@pytest.mark.parametrize("page", ["spec.md", "data.md", "logs.md"])
def test_every_line_of_a_table_is_a_fact(page: str) -> None:
    text = (ROOT / "tests" / "conformance" / "facts" / page).read_text()
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert len(lines) == sum(row[0] == page for row in ROWS)


@pytest.mark.parametrize("page, section, fact, test", ROWS)
def test_every_fact_has_a_test(page: str, section: str, fact: str, test: str) -> None:
    path, _, name = test.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text(), f"{page}, {section}, {fact}: {test}"
