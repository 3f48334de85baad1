"""What a template may import, and whether what that leaves behind survives a fork."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from parallelrun_worker.templates.leading_imports import UserModule, UserModuleGuard, leading_imports, may_share

CHECK = """
import os, signal, subprocess, sys, threading
from parallelrun_worker.templates.fitness import Unfit, check_fitness, state_of_process
before = state_of_process()
{change}
try:
    check_fitness(before)
except Unfit as unfit:
    os.write(int(sys.argv[1]), str(unfit).encode())
os._exit(0)
"""


@pytest.mark.parametrize(
    "script, modules",
    [
        ("import os\nimport numpy as np\nimport pandas, pyarrow.parquet", ["os", "numpy", "pandas", "pyarrow.parquet"]),
        ('"""Doc."""\nfrom __future__ import annotations\nfrom pyarrow import parquet, csv', ["pyarrow(parquet,csv)"]),
        ("import os\nimport torch\nimport numpy", ["os"]),
        ("import os, own, numpy", ["os"]),
        ("from . import own\nimport numpy", []),
        ("import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport numpy", ["os"]),
        ("import os\ntry:\n    import numpy\nexcept ImportError:\n    pass\nimport pandas", ["os"]),
        ("import antigravity", []),
        ("import parallelrun_worker.outputs", []),
        ("def run(items): return items", []),
    ],
)
def test_only_what_comes_first_and_may_be_shared_is_imported(script: str, modules: list[str]) -> None:
    imports = [f"{module}({','.join(names)})" if names else module for module, names in leading_imports(script)]
    assert imports == modules


@pytest.mark.parametrize("module", ["torch", "tensorflow", "sklearn", "redis", "this", "nump"])
def test_what_is_not_known_to_bear_a_fork_is_not_shared(module: str) -> None:
    assert not may_share(module)


def test_a_module_of_the_user_is_refused_and_others_are_left_to_other_finders(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("")
    (tmp_path / "six").mkdir()
    (tmp_path / "six" / "__init__.py").write_text("")
    guard = UserModuleGuard([str(tmp_path)])
    assert guard.find_spec("json") is None
    assert guard.find_spec("json.queue", ["/anywhere"]) is None
    assert guard.refused == ""
    for name in ("queue", "six"):
        with pytest.raises(UserModule):
            guard.find_spec(name)
        assert guard.refused == name
    later = UserModuleGuard([])
    later.add([str(tmp_path)], ["json", "json.queue"])
    with pytest.raises(UserModule):
        later.add([], ["json", "queue"])
    early = UserModuleGuard([])
    assert early.find_spec("six") is None  # as an optional one that isn't installed
    with pytest.raises(UserModule):
        early.add([str(tmp_path)], [])


@pytest.mark.parametrize(
    "change, reason",
    [
        ("pass", ""),
        ("print('hello')", "its imports have printed something"),
        ("os.write(2, b'hello')", "its imports have printed something"),
        ("file = open('/dev/zero')", "its imports have left files open"),
        ("signal.signal(signal.SIGUSR1, print)", "its imports have set a handler of signals"),
        ("threading.Thread(target=signal.pause, daemon=True).start()", "its imports have started threads: python"),
        ("child = subprocess.Popen(['sleep', '1000'])", "its imports have started processes"),
    ],
)
def test_what_a_fork_would_lose_is_found(tmp_path: Path, change: str, reason: str) -> None:
    report = tmp_path / "report"
    with report.open("wb") as file, (tmp_path / "printed").open("wb") as printed:
        command = [sys.executable, "-c", CHECK.format(change=change), str(file.fileno())]
        subprocess.run(command, stdout=printed, stderr=printed, pass_fds=[file.fileno()], check=True, timeout=60)
    assert report.read_text().rstrip("0123456789.") == reason
