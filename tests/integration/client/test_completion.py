"""What a shell completes, as bash asks for it: by running the command with the words so far in its environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.client.fake_api import COMPLETED, JOB, Answer, FakeApi

COMMAND = Path(sys.executable).with_name("parallelrun")


def completed(line: str, **env: str) -> list[str]:
    """What is offered at the end of this line."""
    words = line.split(" ")
    asking = {"_PARALLELRUN_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    shell = subprocess.run(
        [COMMAND], env={**os.environ, **asking, **env}, capture_output=True, text=True, timeout=60, check=True
    )
    assert shell.stderr == ""
    return shell.stdout.split()


def test_ids_logs_and_names_are_completed(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_URL", api.url)
    api.on("GET", "/v1/jobs", Answer.of({"items": [JOB, {**COMPLETED, "id": "other"}]}))
    api.on(
        "GET",
        "/v1/jobs/job_1/logs",
        Answer.of({"items": [{"path": "logs/a\x1b.txt", "bytes": 3, "modified": "2026-01-02T03:04:05.000Z"}]}),
    )
    api.on("GET", "/v1/datastores", Answer.of({"items": [{"name": "lake", "type": "s3", "access": "node"}]}))

    assert completed("parallelrun job show job") == ["job_1"]
    assert completed("parallelrun job logs job_1 l") == ["logs/a\\x1b.txt"]
    assert completed("parallelrun datastore show ") == ["lake"]
    assert completed("parallelrun job list --status f") == ["finalizing", "failed"]
    assert completed("parallelrun job show job_1 -o y") == ["yaml"]
    assert completed("parallelrun job mini-b") == ["mini-batches"]


def test_without_a_server_nothing_is_offered_and_nothing_is_said() -> None:
    assert completed("parallelrun job show job_", PARALLELRUN_URL="http://127.0.0.1:9") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_printed_and_can_be_installed(shell: str, tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "SHELL": f"/bin/{shell}"}
    env["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"  # so that the shell of the tests is not it
    for option in ("--show-completion", "--install-completion"):
        done = subprocess.run([COMMAND, option, shell], env=env, capture_output=True, text=True, timeout=60, check=True)
        assert shell in done.stdout + done.stderr or "parallelrun" in done.stdout
    assert any(path.is_file() for path in tmp_path.rglob("*"))
