"""What an image is built of is sent before its job, and the notes on images are those of who knows the compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parallelrun.job_file.reading import read_spec
from parallelrun.packaging.submission import notes_on, with_contexts_sent
from parallelrun_core.computes.images import BUILD_NOTE

STORED = "azureml:code/" + "a" * 64


def job(path: Path | str) -> dict[str, Any]:
    environment = {"build": {"path": str(path)}, "pip": ["six"]}
    return {"code": "src", "entry_script": "e.py", "inputs": "data", "environment": environment}


def test_each_folder_is_sent_and_what_is_stored_or_missing_stays(tmp_path: Path) -> None:
    sent: list[tuple[Path, str]] = []

    def send(folder: Path, dockerfile: str) -> str:
        sent.append((folder, dockerfile))
        return STORED

    paths: dict[str, Path | str] = {"own": tmp_path, "stored": STORED, "gone": tmp_path / "gone"}
    steps = {name: {"type": "command", "job": job(path)} for name, path in paths.items()}
    inner = {"type": "pipeline", "steps": steps}
    outer = with_contexts_sent({"type": "pipeline", "steps": {"all": {"type": "pipeline", "job": inner}}}, send)

    made = {name: step["job"]["environment"] for name, step in outer["steps"]["all"]["job"]["steps"].items()}
    assert sent == [(tmp_path, "Dockerfile")]
    assert made["own"] == {"build": {"path": STORED}, "pip": ["six"]}
    assert made["stored"] == job(STORED)["environment"]
    assert made["gone"] == job(tmp_path / "gone")["environment"]


def test_that_no_image_is_built_is_said_only_if_the_server_says_so(tmp_path: Path) -> None:
    reading = read_spec(job(tmp_path))
    assert [note.message for note in reading.notes] == [BUILD_NOTE]
    assert notes_on(reading, []) == []
    assert notes_on(reading, [f"/environment/build: {BUILD_NOTE}"]) == [f"/environment/build: {BUILD_NOTE}"]
    assert notes_on(reading, ["what only the server knows"]) == ["what only the server knows"]
