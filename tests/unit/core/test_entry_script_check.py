"""Entry scripts that can't be run are refused with the reason, and no other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from parallelrun_core.code.entry_script_check import Contract, check_entry_script
from parallelrun_core.errors import InvalidInput


@pytest.mark.parametrize(
    "source",
    [
        "def run(mini_batch): ...",
        "class run: ...",
        "from lib import run",
        "from lib import other as run",
        "from lib import *",
        "run = lambda mini_batch: mini_batch",
        "try:\n    from a import run\nexcept ImportError:\n    run = None",
        "if True:\n    def run(x): ...",
        "# -*- coding: latin-1 -*-\nname = '\xe9'\ndef run(x): ...",
    ],
)
def test_a_script_with_run_is_accepted_however_it_comes_by_it(tmp_path: Path, source: str) -> None:
    (tmp_path / "a.py").write_bytes(source.encode("latin-1"))
    check_entry_script(tmp_path, "a.py")


RUN = "def run(mini_batch): ...\n"


def test_an_ordinary_run_is_refused_where_several_are_to_be_awaited_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import time\n" + RUN)
    with pytest.raises(InvalidInput, match=r"a\.py, line 2: run\(\) is an ordinary function"):
        check_entry_script(tmp_path, "a.py", contract="awaited")
    check_entry_script(tmp_path, "a.py")


def test_a_streaming_script_needs_all_functions_of_that_contract(tmp_path: Path) -> None:
    names = ("enqueue", "check_all_tasks_processed", "get_finished_batch_result", "get_processing_batch_number")
    for count in range(len(names)):
        (tmp_path / "a.py").write_text("".join(f"def {name}(*_): ...\n" for name in names[:count]))
        with pytest.raises(InvalidInput, match=rf"does not define {names[count]}\(\)"):
            check_entry_script(tmp_path, "a.py", contract="streaming")
    (tmp_path / "a.py").write_text("".join(f"def {name}(*_): ...\n" for name in names))
    check_entry_script(tmp_path, "a.py", contract="streaming")


@pytest.mark.parametrize("contract", ["run", "awaited"])
@pytest.mark.parametrize(
    "source",
    [
        "async def run(mini_batch): ...",
        "@blocking\nasync def run(mini_batch): ...",
        "async def run(mini_batch): ...\nrun = blocking(run)",
        "async def run(mini_batch): ...\ndef init():\n    global run\n    run = blocking(run)",
        "async def run(mini_batch): ...\nglobals()['run'] = blocking(run)",
        "import sys\nasync def run(mini_batch): ...\nsetattr(sys.modules[__name__], 'run', print)",
        "from sys import modules as m\nasync def run(mini_batch): ...\nm[__name__].run = print",
        "async def run(mini_batch): ...\nexec('def run(mini_batch): ...')",
        "async def run(mini_batch): ...\nfrom lib import *",
        "try:\n    from lib import run\nexcept ImportError:\n    async def run(mini_batch): ...",
        "if False:\n    async def run(mini_batch): ...\nelse:\n    run = print",
        "async def run(*mini_batch): ...\nasync def init(): ...\nasync def shutdown(): ...",
    ],
)
def test_what_may_be_a_coroutine_function_in_the_end_is_accepted(
    tmp_path: Path, source: str, contract: Contract
) -> None:
    (tmp_path / "a.py").write_text(source)
    check_entry_script(tmp_path, "a.py", contract=contract)


@pytest.mark.parametrize(
    "source, why",
    [
        (b"", "does not define run"),
        (b"def init(): ...\ndef run(): ...", "a.py, line 2: run() can't be called with a mini-batch"),
        (b"def run(:", "/entry_script: a.py: invalid syntax (line 1: def run(:)"),
        (b"x = 1\n  y = 2", "/entry_script: a.py: unexpected indent (line 2: y = 2)"),
        (b"def run(x): ...\n\0", ""),
        (b"\xff\xfe\xff", ""),
        (b"x = " + b"-" * 100_000 + b"1", ""),
        (b"x = a" + b".b" * 100_000, ""),
        (b"(" * 10_000, ""),
    ],
)
def test_a_script_that_cannot_be_run_is_told_with_its_reason(tmp_path: Path, source: bytes, why: str) -> None:
    (tmp_path / "a.py").write_bytes(source)
    with pytest.raises(InvalidInput) as caught:
        check_entry_script(tmp_path, "a.py")
    (problem,) = caught.value.problems
    assert problem.pointer == "/entry_script"
    assert why in str(problem)


def test_a_script_that_is_not_there_may_be_another_or_left_out_by_an_ignore_file(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("made/\n")
    with pytest.raises(InvalidInput, match=r"at its top: no \.py file; \.gitignore may leave it out"):
        check_entry_script(tmp_path, "made/a.py")
    for name in ("score.py", *(f"a{number}.py" for number in range(12))):
        (tmp_path / name).touch()
    with pytest.raises(InvalidInput, match=r"did you mean 'score\.py'\?"):
        check_entry_script(tmp_path, "src/score.py")


NEWER = f"3.{sys.version_info.minor + 1}"


@pytest.mark.parametrize("python", [NEWER, f"{NEWER}.1", ">=3.8", "3"])
def test_syntax_is_left_to_a_python_that_may_be_newer(tmp_path: Path, python: str) -> None:
    (tmp_path / "a.py").write_text("type Path = newer syntax\ndef run(mini_batch): ...")
    check_entry_script(tmp_path, "a.py", python)


@pytest.mark.parametrize("python", ["", "3.8", f"3.{sys.version_info.minor}"])
def test_syntax_is_judged_for_a_python_that_is_not_newer(tmp_path: Path, python: str) -> None:
    (tmp_path / "a.py").write_text("type Path = newer syntax\ndef run(mini_batch): ...")
    with pytest.raises(InvalidInput, match="invalid syntax"):
        check_entry_script(tmp_path, "a.py", python)


@pytest.mark.parametrize("name", ["b.py", "../a.py", "/etc/passwd", "folder", "a.py/x", "", "x" * 300])
def test_a_script_that_is_not_there_is_told_with_those_that_are(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.py").write_text("def run(x): ...")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidInput, match=r"a\.py"):
        check_entry_script(tmp_path, name)
