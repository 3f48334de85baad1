"""The page that a security officer signs names tests that are there, and says of each claim which one shows it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.security.playing import attacks_by_module

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The rows of the table below a heading, without its head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


KINDS = rows("Kinds of holes")
CLAIMS = [row for heading in ("Who may do what", "Threats that were tried") for row in rows(heading)]


@pytest.mark.parametrize("row", CLAIMS, ids=lambda row: row[0])
def test_each_claim_has_a_test_that_is_there(row: list[str]) -> None:
    check_proofs(row[-1])


@pytest.mark.parametrize("row", KINDS, ids=lambda row: row[0])
def test_each_kind_of_hole_has_an_attack_a_twin_and_a_test(row: list[str]) -> None:
    _, _, attacks, twins, tests = row
    assert attacks.startswith("none: ") == twins.startswith("none: ")
    check_proofs(tests)
    if not twins.startswith("none: "):
        check_proofs(twins)
        modules = re.findall(r"`tests/security/attacks/(\w+)\.py`", attacks)
        assert modules
        assert all(attacks_by_module()[module] for module in modules)


def check_proofs(text: str) -> None:
    """Check that a text names tests, and that each is there."""
    proofs = re.findall(r"`(tests/[^`]+)`", text)
    assert proofs
    for proof in proofs:
        file, _, name = proof.partition("::")
        functions = {
            node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(node, ast.FunctionDef)
        }
        assert name in functions if name else any(each.startswith("test_") for each in functions), proof


def test_each_threat_is_at_a_boundary_of_the_page() -> None:
    boundaries = {row[0] for row in rows("Boundaries")}
    tried = {each for row in rows("Threats that were tried") for each in row[1].split(", ")}
    assert tried <= boundaries
    assert len(boundaries) == 8
