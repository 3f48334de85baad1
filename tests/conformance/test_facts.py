"""The tables of facts name tests that exist, and what the code says about the reference can be looked up there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FACTS = ROOT / "tests" / "conformance" / "facts"
ROWS = [
    (page.name, *map(str.strip, row))
    for page in sorted(FACTS.glob("*.md"))
    for row in re.findall(r"^\| (§[\d.]+) \| (.+?) \| (tests/\S+) \|$", page.read_text(), re.MULTILINE)
]
SECTIONS = set(re.findall(r"^\| (§[\d.]+) \|", (FACTS / "README.md").read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", ["spec.md", "data.md", "logs.md"])
def test_every_line_of_a_table_is_a_fact(page: str) -> None:
    lines = [line for line in (FACTS / page).read_text().splitlines() if line.startswith("|")][2:]
    assert len(lines) == sum(row[0] == page for row in ROWS)


@pytest.mark.parametrize("page, section, fact, test", ROWS)
def test_every_fact_has_a_section_and_a_test(page: str, section: str, fact: str, test: str) -> None:
    path, _, name = test.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text(), f"{page}, {section}, {fact}: {test}"
    is_numbered = re.match(r"§(9|10)\.", section)
    assert (is_numbered[0].rstrip(".") if is_numbered else section) in SECTIONS


def test_every_section_that_the_code_names_has_facts() -> None:
    sources = [path for folder in ("client", "services", "shared", "tests") for path in (ROOT / folder).rglob("*.py")]
    named = {f"§{number}" for path in sources for number in re.findall(r"§(\d+(?:\.\d+)?)", path.read_text())}
    assert named
    assert named <= SECTIONS
    assert named <= {section for _, section, _, _ in ROWS}
