"""What a process logs as metrics: a line each, never more than may be, and nothing that fails its script."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import pytest

from parallelrun_worker.script_api import metrics
from parallelrun_worker.script_api.metrics import MetricLog, plain


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def values(path: Path) -> list[Any]:
    return [line["value"] for line in lines(path) if "value" in line]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "user" / "metrics" / "node000" / "process000.jsonl"


@pytest.fixture
def log(path: Path) -> MetricLog:
    return MetricLog(str(path))


def test_a_metric_is_in_the_file_at_once_and_no_file_is_there_before(log: MetricLog, path: Path) -> None:
    assert not path.parent.exists()
    log.log("loss", 0.25, step=3)
    assert path.exists()
    log.log("loss", 0.125)
    first, second = lines(path)
    assert first["time"] <= second["time"]
    assert {key: first[key] for key in ("name", "value", "step")} == {"name": "loss", "value": 0.25, "step": 3}
    assert "step" not in second
    assert log.logged == {"loss": [0.25, 0.125]}


class Scalar:
    def item(self) -> float:
        return 0.5


class Unlike:
    def __str__(self) -> str:
        return "unlike"


@pytest.mark.parametrize(
    "value, written",
    [
        (True, True), (7, 7), (0.5, 0.5), ("text", "text"), (None, None),
        (float("nan"), "nan"), (float("-inf"), "-inf"),
        ([1, (2, 3)], [1, [2, 3]]), ({1: {"b": 2}}, {"1": {"b": 2}}), (Scalar(), 0.5), (Unlike(), "unlike"),
    ],
)  # fmt: skip
def test_any_value_has_a_form(value: object, written: object, log: MetricLog, path: Path) -> None:
    assert plain(value) == written
    log.log("name", value)
    assert values(path) == [written]


def test_too_many_at_once_are_left_out_and_counted(
    log: MetricLog, path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    log = MetricLog(str(path))
    for number in range(metrics.BURST + 100):
        log.log("number", number)
    assert values(path) == list(range(metrics.BURST))
    assert "'number' is left out" in capsys.readouterr().err
    now[0] += 1.0
    log.log("number", -1)
    assert lines(path)[-2:][0] == {"dropped": 100}
    assert values(path)[-1] == -1


def test_a_long_one_is_left_out_and_the_file_has_an_end(path: Path) -> None:
    log = MetricLog(str(path), max_bytes=1000)
    log.log("long", "x" * metrics.MAX_LINE)
    for number in range(100):
        log.log("number", number)
    log.close()
    assert path.stat().st_size < 1100
    assert sum(line.get("dropped", 0) for line in lines(path)) == 101 - len(values(path))


def test_a_full_disk_fails_no_script_and_tears_no_later_line(
    log: MetricLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.log("a", 1)
    write = os.write

    def fail(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "full")

    def half(fd: int, data: bytes) -> int:
        return write(fd, data[: len(data) // 2])

    for broken in (fail, half):
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", broken)
            log.log("b", 2)
    log.log("c", 3)
    whole = [line for line in path.read_text().splitlines() if line.endswith("}")]
    assert [json.loads(line).get("name") for line in whole if "name" in line] == ["a", "c"]


def in_child(log: MetricLog, value: int) -> None:
    log.log("child", value)
    log.close()


def test_a_forked_child_logs_to_the_same_file(log: MetricLog, path: Path) -> None:
    log.log("parent", 0)
    children = [multiprocessing.get_context("fork").Process(target=in_child, args=(log, number)) for number in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(30)
    assert sorted(values(path)) == [0, 0, 1, 2]


def test_what_was_logged_is_synced(log: MetricLog, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    log.log("a", 1)
    log.close()
    assert len(synced) == 1
    log.close()
    assert len(synced) == 1


def test_outside_of_a_job_metrics_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = MetricLog("")
    log.log("a", 1)
    log.close()
    assert log.logged == {"a": 1}
    assert list(tmp_path.iterdir()) == []
