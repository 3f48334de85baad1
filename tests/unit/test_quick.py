"""`make quick` finds the tests that are nearest to a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts import ROOT, all_test_files
from tests.quick import MOST_WITH_SERVERS, choose, imports_of, module_of, nearest


@pytest.mark.parametrize(
    "file, module",
    [
        ("shared/parallelrun_core/ids.py", "parallelrun_core.ids"),
        ("services/agent/parallelrun_worker/__init__.py", "parallelrun_worker"),
        ("client/parallelrun/cli.py", "parallelrun.cli"),
        ("tests/cluster.py", "tests.cluster"),
        ("docs/usage.md", None),
    ],
)
def test_quick_names_a_module_as_it_is_imported(file: str, module: str | None) -> None:
    assert module_of(file) == module


def test_quick_finds_imports_inside_functions_too(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("import one.two\n\ndef f():\n    from three import four\n")

    assert set(imports_of(file)) == {"one.two", "three", "three.four"}


def test_quick_runs_changed_tests_first_and_then_those_that_import_what_changed() -> None:
    here = "tests/unit/test_quick.py"
    near = nearest([here, "shared/parallelrun_core/ids.py"], all_test_files())

    assert near[0] == here
    assert any("parallelrun_core.ids" in set(imports_of(ROOT / file)) for file in near[1:])
    assert nearest(["docs/usage.md"], all_test_files()) == []


def test_quick_starts_few_servers_and_none_for_what_only_make_test_all_runs() -> None:
    chosen = choose(all_test_files())
    with_servers = [file for file in chosen if not file.startswith(("tests/unit/", "tests/conformance/"))]

    assert with_servers == chosen[-MOST_WITH_SERVERS:]
    assert not any(file.startswith("tests/chaos/") for file in chosen)
