"""The metrics of a job, read from files that scripts may have written anything into."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from parallelrun_core.folder import metrics
from parallelrun_core.folder.metrics import last_values, pass_on, read_metrics
from parallelrun_worker.script_api.metrics import MetricLog


def write(logs: Path, source: str, process: str, *points: object) -> Path:
    path = logs / "user" / "metrics" / source / f"{process}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in points))
    return path


def test_the_points_of_all_processes_in_the_order_of_their_times(tmp_path: Path) -> None:
    for number, node in enumerate(("node1", "node0")):
        log = MetricLog(str(tmp_path / "user" / "metrics" / node / "process000.jsonl"))
        log.log("loss", number, step=number)
        log.log(node, {"list": [1]})
    read = read_metrics(tmp_path)
    assert list(read.metrics) == ["loss", "node0", "node1"]
    loss = read.metrics["loss"]
    assert (loss.count, loss.last) == (2, 1)
    assert [(point.value, point.step, point.source, point.process) for point in loss.points] == [
        (0, 0, "node1", "process000"), (1, 1, "node0", "process000"),
    ]  # fmt: skip
    assert last_values(tmp_path) == {"loss": 1}


def test_what_is_no_metric_is_left_out(tmp_path: Path) -> None:
    good = {"time": 1.0, "name": "a", "value": 1}
    write(tmp_path, "node0", "p", "not json", "[1]", "NaN", {"time": "x", "name": "b"}, '{"time": 1, "na', good, "")
    write(tmp_path, "node0", "q", {"dropped": 7}, {"time": 1.0, "name": "n" * 256, "value": 1})
    (tmp_path / "user" / "metrics" / "node0" / "other.txt").write_text(json.dumps(good))
    (tmp_path / "user" / "metrics" / "file").write_text(json.dumps(good))
    read = read_metrics(tmp_path)
    assert {name: metric.count for name, metric in read.metrics.items()} == {"a": 1}
    assert read.left_out == 7


def test_no_link_is_followed_and_no_file_of_others_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"time": 1.0, "name": "secret", "value": 1}) + "\n")
    folder = write(tmp_path / "logs", "node0", "p", {"time": 1.0, "name": "a", "value": 1}).parent
    (folder / "q.jsonl").symlink_to(secret)
    os.link(secret, folder / "r.jsonl")
    os.mkfifo(folder / "s.jsonl")
    (folder.parent / "node1").symlink_to(folder)
    assert {name: metric.count for name, metric in read_metrics(tmp_path / "logs").metrics.items()} == {"a": 1}


def test_no_more_is_read_than_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_NAMES", 3)
    monkeypatch.setattr(metrics, "MAX_POINTS", 10)
    write(tmp_path, "node0", "p", *({"time": 100.0 - n, "name": f"m{n % 5}", "value": n} for n in range(200)))
    read = read_metrics(tmp_path)
    assert {name: (metric.count, len(metric.points)) for name, metric in read.metrics.items()} == {
        "m0": (40, 10), "m1": (40, 10), "m2": (40, 10),
    }  # fmt: skip
    assert read.left_out == 80
    assert read.metrics["m0"].last == 0
    monkeypatch.setattr(metrics, "_MAX_BYTES", 100)
    read = read_metrics(tmp_path)
    assert sum(metric.count for metric in read.metrics.values()) < 5
    assert read.left_out == 1


def line(name: str, value: str) -> str:
    return f'{{"time": 1, "name": "{name}", "value": {value}}}\n'


EVIL = {
    "one line": ("[", 4 << 20),
    "empty lines": ("\n", 4 << 20),
    "lists": (line("lists", f"[{'[],' * 10_000}[]]"), 140),
    "lists of many names": ("".join(line(f"m{n}", f"[{'[1],' * 100}[]]") for n in range(490)), 8),
    "small values": ("".join(f'{{"name": "m{n}"}}\n' for n in range(490)), 250),
}


READ = """
import resource, sys
from pathlib import Path
from parallelrun_core.folder.metrics import read_metrics

def peak_kib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

before = peak_kib()
read = read_metrics(Path(sys.argv[1]))
print(peak_kib() - before, read.metrics["a"].last, read.left_out)
"""


@pytest.mark.parametrize("evil", EVIL)
def test_files_that_are_made_to_be_large_take_little_memory(tmp_path: Path, evil: str) -> None:
    text, times = EVIL[evil]
    write(tmp_path, "node0", "q").write_text(text * times)
    write(tmp_path, "node0", "p", {"time": 9.0, "name": "a", "value": 1})
    # In a process of its own: to trace each allocation would take a minute.
    done = subprocess.run([sys.executable, "-c", READ, str(tmp_path)], capture_output=True, text=True, check=True)
    more_kib, last, left_out = map(int, done.stdout.split())
    assert last == 1
    assert more_kib < 32 << 10
    if evil in ("one line", "empty lines"):
        assert left_out == 1


def test_lines_that_are_too_long_or_too_deep_are_left_out_and_others_are_read(tmp_path: Path) -> None:
    deep = line("deep", "[" * 33 + "]" * 33)
    long = json.dumps({"time": 1.0, "name": "long", "value": "x" * (64 << 10)})
    flat = {"time": 1.0, "name": "flat", "value": [[[1]]] * 20}
    write(tmp_path, "node0", "p", deep.rstrip(), long, flat)
    read = read_metrics(tmp_path)
    assert read.left_out == 2
    assert read.metrics["flat"].last == [[[1]]] * 20
    assert list(read.metrics) == ["flat"]


def test_the_last_values_are_kept_when_they_are_too_large_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_MAX_WEIGHT", 100_000)
    write(tmp_path, "node0", "p", *({"time": float(n), "name": "m", "value": f"{n}" * 1000} for n in range(100)))
    metric = read_metrics(tmp_path).metrics["m"]
    assert metric.count == 100
    assert 20 < len(metric.points) < 60
    assert metric.last == "99" * 1000


def test_a_pipeline_gets_the_metrics_of_a_step(tmp_path: Path) -> None:
    write(tmp_path / "child", "node0", "p", {"time": 1.0, "name": "a", "value": 1, "step": 4})
    for _ in range(2):
        pass_on(tmp_path / "child", tmp_path / "parent", step="score", prefix="eval_")
    (point,) = read_metrics(tmp_path / "parent").metrics["eval_a"].points
    assert (point.value, point.step, point.source) == (1, 4, "score")
    pass_on(tmp_path / "none", tmp_path / "other", step="score")
    assert not (tmp_path / "other").exists()
    assert last_values(tmp_path / "none") == {}
