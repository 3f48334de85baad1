"""A template that is begun before its script is known is as any, and is nobody's whose imports could differ."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import parallelrun
from parallelrun_agent.workers.template_process import TemplateKey
from parallelrun_agent.workers.templates import WorkerTemplates
from tests.integration.worker.test_templates import SURROUNDINGS, node, poll, seen, wait_for_template
from tests.integration.worker.worker_harness import WorkerHarness, key_of

__all__ = ["node"]

pytestmark = pytest.mark.integration

TABLE = {"name": "data", "kind": "delimited", "libraries": ["pandas"], "tail": 0, "keys": []}


def key_of_script(folder: Path, script: str = "def run(items): return items", **variables: str) -> TemplateKey:
    """The key of a template for a script whose input is a table."""
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "score.py").write_text(script)
    (folder / "inputs.json").write_text(json.dumps([TABLE]))
    return replace(key_of(folder / "code", **variables), owner="anna", inputs=str(folder / "inputs.json"))


def begin(node: WorkerTemplates, key: TemplateKey, preload: Sequence[str] = ("pandas",)) -> int:
    """Begin the template of this key before its script is known; returns its process id."""
    begun = replace(key, owner="", code="", entry_script="")
    node.begin(begun, preload, time.monotonic())
    return node._running[begun].process.pid


def test_a_worker_of_a_begun_template_finds_what_one_of_another_finds(
    node: WorkerTemplates, start: Callable[..., WorkerHarness], tmp_path: Path
) -> None:
    found = []
    for name in ("begun", "other"):
        key = key_of_script(tmp_path / name, SURROUNDINGS)
        pid = begin(node, key) if name == "begun" else 0
        wait_for_template(node, key)
        assert (node._running[key].process.pid == pid) == (name == "begun")
        harness = start(SURROUNDINGS, fork=lambda _, request, key=key: node.fork(key, request))
        assert harness.worker.is_forked
        found.append(seen(harness))
    assert found[0] == found[1]


@pytest.mark.parametrize("module", ["dateutil", "pandas"])
def test_a_begun_template_is_for_nobody_who_has_a_module_of_its_imports(
    node: WorkerTemplates, tmp_path: Path, module: str, capfd: pytest.CaptureFixture[str]
) -> None:
    key = key_of_script(tmp_path)
    (tmp_path / "code" / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    begin(node, key)
    poll(node, lambda: not node.is_awaited(key, time.monotonic()))
    assert not node._running, "each worker is a new Python, as with any other template"
    assert not (tmp_path / "ran").exists()
    assert capfd.readouterr().out.count(f"the user has a module {module} of their own") == 2


def test_a_begun_template_imports_nothing_of_the_users_path(node: WorkerTemplates, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "dateutil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    begin(node, key_of_script(tmp_path, PYTHONPATH=str(own)))
    poll(node, lambda: not node._running)
    assert not (tmp_path / "ran").exists()


def test_a_begun_template_is_for_one_script_and_one_that_needs_its_imports(
    node: WorkerTemplates, tmp_path: Path
) -> None:
    first, second, of_files = (key_of_script(tmp_path / name) for name in ("first", "second", "files"))
    pid = begin(node, first)
    for other in (replace(first, job_id="job_1"), replace(first, environment=(("TOKEN", "x"),))):
        assert node.is_awaited(other, time.monotonic())
        assert node._running[other].process.pid != pid
    for key in (first, second):
        wait_for_template(node, key)
    assert [node._running[key].process.pid == pid for key in (first, second)] == [True, False]
    Path(of_files.inputs).write_text("[]")
    node._end(second)
    for script, is_suited in (("import os\nimport numpy", False), ("import os\nfrom pandas import Series", True)):
        Path(of_files.code, "score.py").write_text(script)
        pid = begin(node, of_files)
        wait_for_template(node, of_files)
        assert (node._running[of_files].process.pid == pid) == is_suited
        node._end(of_files)


@pytest.mark.parametrize(
    "imports, data", [("os", {"transformations": ["read_delimited"]}), ("os, numpy", {})], ids=["table", "script"]
)
@pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux")
def test_a_run_begins_the_template_of_its_tables_and_script(
    tmp_path: Path, imports: str, data: dict[str, object]
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text(
        f"import {imports}, psutil\n"
        "def run(mini_batch):\n"
        "    commands = [each.cmdline() for each in psutil.Process(os.getppid()).children()]\n"
        "    return [str([command[-1] for command in commands if 'template' in command])]\n"
    )
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    result = parallelrun.run(
        {
            "code": str(tmp_path / "src"), "entry_script": "main.py",
            "inputs": {"data": {"path": str(tmp_path / "data.csv"), **data}},
        },
        output=tmp_path / "out", processes=1, progress=False,
    )  # fmt: skip
    assert result.output is not None
    assert result.output.read_text() == f"['{'pandas' if data else 'numpy'}']\n", "there is no other one"
