"""How an entry script is loaded: in an interpreter of its own, as in a worker."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from parallelrun_worker.execution.failures import describe

AGENT = Path(__file__).parents[3] / "services" / "agent"
LOAD = """
import sys
sys.path.insert(0, sys.argv[3])
import json, logging, struct, zlib, faulthandler, signal, ctypes
from parallelrun_worker.execution.user_script import UserScript
from parallelrun_worker.mini_batches.mini_batch import of_paths
script = UserScript(sys.argv[1], sys.argv[2], "job_1")
if script.init: script.init()
print(json.dumps([script.run(7, of_paths(b"a")), script.init is not None, script.shutdown is not None]))
"""


def load(code: Path, entry_script: str = "score.py") -> Any:
    """Load the script as a worker does, with what a worker has imported by then, and call run(['a'])."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOAD, str(code), entry_script, str(AGENT)], capture_output=True, timeout=60,
        check=False, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write(folder: Path, **sources: str) -> Path:
    for name, source in sources.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
    return folder


def test_init_and_shutdown_need_not_be_there(tmp_path: Path) -> None:
    assert load(write(tmp_path, score="def run(items): return items")) == [["a"], False, False]
    script = "def init(): ...\ndef shutdown(): ...\ndef run(items): return items"
    assert load(write(tmp_path, score=script)) == [["a"], True, True]


NEW = "return [] if context is None else [context.minibatch_index, context.idempotency_key, items]"
WITH = [7, "job_1:7", ["a"]]


@pytest.mark.parametrize(
    "source, result",
    [
        (f"def run(items, context): {NEW}", WITH),
        (f"def run(items, mini_batch_context): {NEW.replace('context', 'mini_batch_context')}", WITH),
        (f"def run(items, context=None): {NEW}", WITH),
        (f"def run(items, context, /): {NEW}", WITH),
        (f"def run(items, *, context=None): {NEW}", []),
        ("def run(items, *more): return list(more)", []),
        ("def run(items, **more): return list(more)", []),
        (f"class Model:\n    def __call__(self, items, context): {NEW}\nrun = Model()", WITH),
        (f"class Model:\n    def go(self, items, context): {NEW}\nrun = Model().go", WITH),
        ("class Model:\n    def go(self, items): return items\nrun = Model().go", ["a"]),
        (f"class Model:\n    @staticmethod\n    def go(items, context): {NEW}\nrun = Model.go", WITH),
        (f"import functools\ndef base(x, items, context): {NEW}\nrun = functools.partial(base, 1)", WITH),
        ("run = lambda items: items", ["a"]),
        (
            "import functools\ndef traced(f):\n    @functools.wraps(f)\n    def call(*a, **k): return f(*a, **k)\n"
            f"    return call\n@traced\ndef run(items, context): {NEW}",
            WITH,
        ),
        (
            "import functools\ndef traced(f):\n    @functools.wraps(f)\n    def call(*a, **k): return f(*a, **k)\n"
            "    return call\n@traced\ndef run(items): return items",
            ["a"],
        ),
        ("def run(*items): return items[0]", ["a"]),
    ],
)
def test_the_context_comes_when_there_is_a_place_for_it(tmp_path: Path, source: str, result: object) -> None:
    assert load(write(tmp_path, score=source))[0] == result


@pytest.mark.parametrize(
    "name", ["queue", "shared", "redis", "utils", "runner", "frames", "rows", "parallelrun", "yaml"]
)
def test_the_users_own_module_wins(tmp_path: Path, name: str) -> None:
    script = f"import {name}\ndef run(items): return {name}.__file__"
    write(tmp_path, score=script, **{name: ""})
    assert load(tmp_path)[0] == str(tmp_path / f"{name}.py")


@pytest.mark.parametrize(
    "entry_script",
    ["my-script.py", "my script.py", "1st.py", "score.v2.py", "queue.py", "test.py", "json.py", "signal.py", "time.py",
     "main.py", "runner.py", "sub/score.py", "sub/sub/x.y.py"],
)  # fmt: skip
def test_an_entry_script_may_have_any_name(tmp_path: Path, entry_script: str) -> None:
    path = tmp_path / entry_script
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("def run(items): return [__file__]")
    assert load(tmp_path, entry_script)[0] == [str(path)]


def test_a_script_in_a_subfolder_imports_its_siblings_and_the_root(tmp_path: Path) -> None:
    write(
        tmp_path,
        scoring__score="import near, far, lib.deep\ndef run(items): return [near.X, far.X, lib.deep.X]",
        scoring__near="X = 1",
        far="X = 2",
        lib__deep="X = 3",
        near="X = 'the one beside the script is nearer'",
    )
    assert load(tmp_path, "scoring/score.py")[0] == [1, 2, 3]


def test_a_dotted_module_path_is_as_good_as_a_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        batch_score__main="from . import near\nimport beside, far\n"
        "def run(items): return [near.X, beside.X, far.X, __name__]",
        batch_score__near="X = 1",
        batch_score__beside="X = 2",
        far="X = 3",
    )
    assert load(tmp_path, "batch_score.main")[0] == [1, 2, 3, "batch_score.main"]


def test_the_script_is_imported_and_not_main(tmp_path: Path) -> None:
    script = "M = []\nif __name__ == '__main__':\n    M.append(1)\ndef run(items): return [__name__, M]"
    assert load(write(tmp_path, score=script))[0] == ["score", []]


def test_what_run_leaves_in_globals_is_there_the_next_time(tmp_path: Path) -> None:
    script = "def init():\n    global model\n    model = 5\ndef run(items): return model"
    assert load(write(tmp_path, score=script))[0] == 5


def test_objects_of_the_script_can_be_pickled(tmp_path: Path) -> None:
    script = "import pickle\nclass Model: x = 3\ndef run(items): return pickle.loads(pickle.dumps(Model())).x"
    assert load(write(tmp_path, score=script))[0] == 3


def test_a_module_that_is_missing_is_told_with_the_python_that_has_none() -> None:
    told = json.loads(describe(ModuleNotFoundError("No module named 'torch'"), "/code"))

    assert told["message"] == f"ModuleNotFoundError: No module named 'torch' (in the Python {sys.executable})"
