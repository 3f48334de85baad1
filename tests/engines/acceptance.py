"""The main job on nodes of an engine: the same bytes as on this machine, and how soon the first run() begins."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from tests.acceptance.embedded import parallelrun
from tests.acceptance.http_user import zip_of
from tests.engines.nodes import Provisioned
from tests.engines.target import PATIENCE_S

ROOT = Path(__file__).parents[2]
OUTPUT = "digits.txt"
_SOON = """
import os, time
def run(mini_batch):
    with open(os.environ["FIRST"], "a") as file:
        file.write(f"{time.time()}\\n")
    return [os.path.basename(path) for path in mini_batch]
"""


def prepared_digits(folder: Path) -> Path:
    """A copy of the example, with its data, in a folder that nodes see."""
    copy = folder / "digits"
    shutil.copytree(ROOT / "examples" / "digits", copy, ignore=shutil.ignore_patterns("data", "out", "__pycache__"))
    subprocess.run([sys.executable, copy / "prepare.py"], check=True, capture_output=True, timeout=100)
    return copy


def rows_here(digits: Path, folder: Path) -> bytes:
    """The output of the job when it is run as the README says it."""
    said = parallelrun("run", digits / "job.yml", "--output", folder / "out", "--nodes", "2", cwd=folder)
    assert said.code == 0, said
    return (folder / "out" / OUTPUT).read_bytes()


def rows_there(there: Provisioned, digits: Path) -> bytes:
    """The output of the job, unmodified but for its compute."""
    spec: dict[str, Any] = yaml.safe_load((digits / "job.yml").read_text())
    code = digits / spec.pop("code")
    spec["inputs"]["images"] = str(digits / spec["inputs"]["images"])
    spec["inputs"]["model"]["path"] = str(digits / spec["inputs"]["model"]["path"])
    job = there.user.submit({**spec, "compute": f"azureml:{there.pool}"}, zip_of(code))
    there.user.completed(job, timeout_s=PATIENCE_S)
    return there.user.download(job, OUTPUT)


def first_run_s(there: Provisioned) -> float:
    """The seconds from a request to its first run(), with a node that has to be launched for it."""
    there.cluster.until(lambda: not there.ours(), "idle nodes are given back", PATIENCE_S)
    first = there.cluster.home / f"first-{secrets.token_hex(4)}"
    spec = {
        "entry_script": "entry.py", "inputs": str(there.cluster.files(2)), "compute": there.pool,
        "environment_variables": {"FIRST": str(first)},
    }  # fmt: skip
    code = zip_of({"entry.py": _SOON})
    asked = time.time()
    job = there.user.submit(spec, code)
    there.user.completed(job)
    return float(first.read_text().splitlines()[0]) - asked
