"""What `main()` returns or raises becomes the exit code, however quickly the interpreter ends; and how it begins."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import FrozenInstanceError, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from parallelrun_core.service import launch
from parallelrun_core.service.quick_dataclasses import shared_methods


def launched(tmp_path: Path, body: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "service.py").write_text(f"import gc, sys\n\ndef main():\n    {body}\n")
    return subprocess.run(
        [sys.executable, "-m", "parallelrun_core.service.launch", "service", "one", "two"],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "body, code, told",
    [
        ("pass", 0, ""),
        ("return 4", 4, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('not today')", 1, "not today\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
    ],
)
def test_the_exit_code_and_the_last_words_are_those_of_main(tmp_path: Path, body: str, code: int, told: str) -> None:
    done = launched(tmp_path, body)
    assert (done.returncode, done.stderr[-len(told) :] if told else done.stderr) == (code, told)


def test_main_finds_its_arguments_and_a_collector_at_work_and_its_output_is_whole(tmp_path: Path) -> None:
    done = launched(tmp_path, "print(sys.argv, gc.isenabled(), end='')")
    assert done.stdout == "['service', 'one', 'two'] True"


def test_what_no_service_draws_is_not_imported_before_main_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text(
        "import sys\nimport structlog\nat_first = sys.modules.get('rich')\n\n"
        "def main():\n    import rich\n    print(at_first, rich.__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "parallelrun_core.service.launch", "service"],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "None rich\n"


def test_what_was_imported_before_stays_the_same_module(tmp_path: Path) -> None:
    """As by what a tracer puts into each interpreter."""
    (tmp_path / "sitecustomize.py").write_text("import rich\nrich.mark = 'ours'\n")
    assert launched(tmp_path, "import rich; print(rich.mark, end='')").stdout == "ours"


@pytest.mark.parametrize("holds_our_packages", [False, True])
def test_folders_of_python_path_come_last_but_where_this_program_is_installed(
    tmp_path: Path, *, holds_our_packages: bool
) -> None:
    (tmp_path / "redis.py").touch()
    if holds_our_packages:
        (tmp_path / "parallelrun_core").symlink_to(Path(launch.__file__).parents[1], target_is_directory=True)
    done = launched(tmp_path, f"import redis, os; print(redis.__file__.startswith({str(tmp_path)!r}), *os.environ)")
    assert done.stdout.split()[0] == str(holds_our_packages)
    assert "PYTHONPATH" in done.stdout


def test_a_console_script_is_named_after_its_service(tmp_path: Path) -> None:
    program = tmp_path / "parallelrun-agent"
    program.write_text(
        "import sys\nfrom parallelrun_core.service.launch import console_script\n\nsys.exit(console_script())\n"
    )
    (tmp_path / "redis.py").write_text("1 / 0\n")
    done = subprocess.run(
        [sys.executable, "-P", str(program), "--help"],
        env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, "parallelrun-agent" in done.stdout.split("\n")[0]) == (0, True), done.stderr


STRUCTS = """
from __future__ import annotations
import sys, threading
import msgspec

sys.setswitchinterval(1e-6)
BODY = {f"field{number}": 1 for number in range(30)}
RAW = msgspec.json.encode({"inner": BODY})
INNER = [msgspec.defstruct(f"Inner{number}", [(name, "int") for name in BODY]) for number in range(400)]
OUTER = [msgspec.defstruct(f"Outer{number}", [("inner", inner)]) for number, inner in enumerate(INNER)]

def decode(barrier):
    for struct in OUTER:
        barrier.wait()
        msgspec.json.decode(RAW, type=struct)

def main():
    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=decode, args=(barrier,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_of_a_service_may_decode_a_struct_for_the_first_time_together(tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text(STRUCTS)
    done = subprocess.run(
        [sys.executable, "-m", "parallelrun_core.service.launch", "service"],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_dataclasses_that_share_methods_are_as_those_that_do_not() -> None:
    assert answers_of_classes(shared_methods()) == answers_of_classes(nullcontext())


def answers_of_classes(block: AbstractContextManager[None]) -> list[object]:
    """What can be asked of dataclasses of each form that were made in this block."""
    with block:

        @dataclass
        class Empty:
            pass

        @dataclass
        class Open:
            one: Any
            unseen: int = field(default=2, repr=False, compare=False)

        @dataclass(frozen=True, order=True)
        class Frozen:
            one: Any
            two: Any = ()

        @dataclass(frozen=True, slots=True)
        class Slots(Frozen):
            three: int = 3

        class Below(Frozen):
            pass

    nan, open_one = float("nan"), Open(1)
    open_one.one = open_one
    instances = [Empty(), Open(1), Open(1, 3), Open(nan), Frozen(1), Frozen(1, 2), Slots(1), Below(1), open_one]
    below = Below(1)
    object.__setattr__(below, "other", 5)

    def outcome(of: Any, *arguments: Any) -> object:
        try:
            return of(*arguments)
        except (TypeError, FrozenInstanceError) as error:
            return repr(error)

    answers: list[object] = [(repr(each), outcome(hash, each), deepcopy(each) == each) for each in instances[:3]]
    answers += [(repr(each), outcome(hash, each)) for each in instances[4:8]]
    answers += [
        repr(open_one),
        Open(nan) == instances[3],
        Frozen(1) == below,
        vars(below),
        replace(Slots(1), two=2).two,
    ]
    answers += [outcome(lambda a, b: a < b, first, second) for first in instances[4:8] for second in instances[4:8]]
    for name in ("one", "two", "new"):
        answers += [(outcome(setattr, each, name, 1), outcome(delattr, each, name)) for each in instances[4:6]]
    answers += [outcome(setattr, below, "new", 1), vars(below), outcome(setattr, below, "one", 1)]
    answers += [method.__qualname__ for method in (Frozen.__eq__, Frozen.__repr__, Frozen.__setattr__, Frozen.__hash__)]
    return answers
