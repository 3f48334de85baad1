"""`parallelrun tune` with real workers."""

from __future__ import annotations

import json
import tempfile
import textwrap
from pathlib import Path

import pytest

from parallelrun.cli import main

pytestmark = pytest.mark.integration


def test_a_job_is_tried_and_nothing_is_left_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = Path(tempfile.mkdtemp(prefix="t"))  # short, as names of sockets must be
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    (tmp_path / "files").mkdir()
    for number in range(300):
        (tmp_path / "files" / f"{number:03}").touch()
    (tmp_path / "main.py").write_text(
        textwrap.dedent("""
            import time
            def run(mini_batch):
                time.sleep(0.05)
                return mini_batch
        """)
    )
    job = tmp_path / "job.yml"
    job.write_text("{entry_script: main.py, code: ., inputs: files, mini_batch_size: 1, output: mine}")

    command = ["tune", str(job), "--target", "1h", "--trial", "0.5s", "--trials", "1", "-o", "json"]
    assert main([*command, "--set", "max_concurrency_per_instance=2"]) == 0

    said = json.loads(capsys.readouterr().out)
    (tried,) = said["tried"]
    assert (said["nodes"], said["set"]) == (1, {"instance_count": "1"})
    assert (tried["set"], tried["mini_batches"], tried["is_listed"], tried["processes"]) == ({}, 300, True, 2)
    assert 0 < tried["tried"] < 300
    assert 300 / 2 * 0.05 < said["seconds"] < 300
    assert not (tmp_path / "mine").exists()
    scratch.rmdir()


def test_a_job_without_mini_batches_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job.yml").write_text("{command: 'true', code: .}")

    assert main(["tune", str(tmp_path / "job.yml")]) == 2
    assert "only a job with mini-batches of data can be tuned" in capsys.readouterr().err
