"""Modules of the user that are named as packages we import: services import the packages, scripts the modules."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux"),
]

NAMES = ("redis", "msgspec", "pydantic", "structlog", "typer", "fastapi", "httpx", "yaml", "queue")


def test_modules_on_python_path_reach_the_script_alone(tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    for name in NAMES:
        (modules / f"{name}.py").write_text("OWNER = 'user'\n" if name == "redis" else "raise OSError('not yours')\n")
    (modules / "helper.py").write_text("ANSWER = 42\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "count.py").write_text(
        "import helper, redis\n\ndef run(mini_batch):\n    return [f'{redis.OWNER} {helper.ANSWER}']\n"
    )
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").touch()
    (tmp_path / "job.yml").write_text("code: src\nentry_script: count.py\ninputs: data\n")

    done = subprocess.run(
        [sys.executable, "-P", "-m", "parallelrun", "run", "job.yml", "--output", "out", "--processes", "1"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(modules)},
        capture_output=True, check=False, text=True, timeout=120,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "parallel_run_step.txt").read_text() == "user 42\n"
