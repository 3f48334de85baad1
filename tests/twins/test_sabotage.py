"""Sabotage that no longer bites is an error, and never a proof that nothing was found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from parallelrun_core.folder.decided import FirstWins
from parallelrun_core.store import script_texts
from tests.cluster import ROOT, Cluster
from tests.twins.mechanisms import MECHANISMS
from tests.twins.sabotage import Line, Step, nothing, replaced, without

SERVICE = """
from parallelrun_core.folder.decided import FirstWins
from parallelrun_core.store.script_texts import source
def main():
    print("held[i] == stem" in source("turn"), FirstWins()._is_late(None, FirstWins._DONE))
"""


def launched(folder: Path, mechanism: str) -> subprocess.CompletedProcess[str]:
    (folder / "service.py").write_text(SERVICE)
    return subprocess.run(
        [sys.executable, "-m", "tests.twins.launch", mechanism, "service"],
        capture_output=True, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(folder)}, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_part_of_a_mechanism_is_where_sabotage_looks_for_it(mechanism: str) -> None:
    with without(mechanism):
        pass


def _replaced_functions() -> list[str]:
    """Return whatever a twin names as `package.module:function`, in all files of this folder."""
    names = set[str]()
    for path in set(Path(__file__).parent.glob("*.py")) - {Path(__file__)}:  # which names what isn't there, too
        names |= set(re.findall(r'"(parallelrun_[\w.]+:[\w.]+)"', path.read_text()))
    return sorted(names)


@pytest.mark.parametrize("name", _replaced_functions())
def test_every_function_that_a_twin_replaces_is_where_it_says(name: str) -> None:
    with replaced(name, nothing):
        pass


def test_what_was_broken_is_whole_again_afterwards() -> None:
    turn, is_late = script_texts.source("turn"), FirstWins._is_late
    with without("commit.fence"):
        assert "held[i] == stem" not in script_texts.source("turn")
        assert FirstWins._is_late is not is_late
    assert script_texts.source("turn") == turn
    assert FirstWins._is_late is is_late


@pytest.mark.parametrize(
    "part",
    [
        Line("turn", "no such text", ""),
        Step("parallelrun_core.folder.decided:FirstWins.no_such_method", nothing),
        Step("parallelrun_core.folder.decisions:NoSuchClass.accept", nothing),
        Step("parallelrun_core.folder.decisions:DecisionWriter._is_late", nothing),
        Step("parallelrun_core.folder.decisions:NAME", nothing),
    ],
)
def test_a_part_that_is_gone_is_an_error_before_anything_starts(
    part: Line | Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MECHANISMS, "moved", (part,))
    with pytest.raises(LookupError, match="sabotage"), without("moved"):
        pytest.fail("it runs with what it should do without")
    with pytest.raises(LookupError, match="sabotage"):
        Cluster(without="moved")


def test_a_service_is_launched_without_a_mechanism_or_not_at_all(tmp_path: Path) -> None:
    assert launched(tmp_path, "commit.fence").stdout == "False False\n"
    assert launched(tmp_path, "lead.term").stdout == "True True\n"
    refused = launched(tmp_path, "no.such")
    assert refused.returncode != 0
    assert "no.such" in refused.stderr
    assert refused.stdout == ""
