"""The memory of a model's weights that 2 and 8 workers of one node read in init(): mapped from their file, and loaded.

Workers wait for each other in init(), when each has read all weights. `mapped_mb` and `loaded_mb` are the memory of the
weights in all workers together: the proportional set size (Pss) of the mapped file, and anonymous memory beyond that of
a worker without weights.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks import Size, data
from benchmarks.jobs import Jobs

MAPPED: Final = """\
import os

import numpy as np


def init():
    global weights
    weights = np.load(os.environ["WEIGHTS"], mmap_mode="r")


def run(mini_batch):
    return [f"{path} {weights[0]}" for path in mini_batch]
"""
"""The script of docs/choosing-a-compute.md."""
LOADED: Final = MAPPED.replace(', mmap_mode="r"', "")
_MEASURING: Final = """

import json
import pathlib
import time

read_weights = init

def meet(name, text):
    folder = pathlib.Path(os.environ["MEETING"])
    (folder / f".{name}.{os.getpid()}").write_text(text)
    (folder / f".{name}.{os.getpid()}").rename(folder / f"{name}.{os.getpid()}")
    while len(list(folder.glob(f"{name}.*"))) < int(os.environ["WORKERS"]):
        time.sleep(0.02)

def pss_bytes():
    found = {"file": 0, "anonymous": 0}
    for line in open("/proc/self/smaps"):
        words = line.split()
        if "-" in words[0]:
            kind = "file" if line.rstrip().endswith(os.environ["WEIGHTS"]) else "anonymous" if len(words) < 6 else ""
        elif words[0] == "Pss:" and kind:
            found[kind] += 1024 * int(words[1])
    return found

def init():
    before = pss_bytes()["anonymous"]
    read_weights()
    weights.sum()
    meet("read", "")
    now = pss_bytes()
    meet("measured", json.dumps({"file": now["file"], "anonymous": now["anonymous"] - before}))
"""


def write_weights(folder: Path, size_bytes: int) -> Path:
    """Write random weights of this size as a file of numpy's; returns it."""
    path = folder / "weights.npy"
    np.save(path, np.random.default_rng(0).random(size_bytes // 4, dtype=np.float32))
    return path


def memory_of_weights(script: str, weights: Path, *, workers: int) -> int:
    """The bytes that these weights take in all workers of a node together, when each has read all of them."""
    with tempfile.TemporaryDirectory() as meeting, Jobs(script + _MEASURING, processes=workers) as jobs:
        variables = {"WEIGHTS": str(weights), "MEETING": meeting, "WORKERS": str(workers)}
        jobs.run(data.files(10 * workers), mini_batch_size=1, environment_variables=variables)
        found = [json.loads(each.read_text()) for each in Path(meeting).glob("measured.*")]
    if len(found) != workers:
        raise RuntimeError(f"{len(found)} workers have read the weights, not {workers}")
    return sum(each["file"] + each["anonymous"] for each in found)


def main(size: Size) -> dict[str, object]:
    """Measure; returns what the last line says."""
    megabytes = {"tiny": 16, "quick": 256, "full": 1_000}[size]
    with tempfile.TemporaryDirectory() as temporary:
        weights = write_weights(Path(temporary), megabytes * 1_000_000)
        last: dict[str, object] = {"weights_mb": megabytes}
        for way, script, workers in (("mapped", MAPPED, 2), ("mapped", MAPPED, 8), ("loaded", LOADED, 2)):
            used = memory_of_weights(script, weights, workers=workers)
            last[f"{way}_{workers}_workers_mb"] = f"{used / 1e6:.0f}"
            print(f"  {way}, {workers} workers: {used / 1e6:,.0f} MB", flush=True)
    return last
