"""Which server a command asks, and what it does when that server or its own reader is away."""

import subprocess
import sys
import time

import pytest

from parallelrun.cli import main
from tests.integration.client.fake_api import JOB, Answer, FakeApi

pytestmark = pytest.mark.usefixtures("_at_the_api")


def test_an_unreachable_server_exits_with_5(capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()

    assert main(["job", "list", "--url", "http://127.0.0.1:9"]) == 5
    assert "No answer from http://127.0.0.1:9" in capsys.readouterr().err
    assert time.monotonic() - began < 10


def test_the_options_win_over_the_environment(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_URL", "http://127.0.0.1:9")
    api.on("GET", "/v1/nodes", Answer.of({"items": []}))

    assert main(["node", "list", "--url", api.url, "--token", "other"]) == 0
    assert api.requests[0].headers["Authorization"] == "Bearer other"


def test_a_reader_that_has_seen_enough_is_no_error(api: FakeApi) -> None:
    api.on("GET", "/v1/jobs", Answer.of({"items": [JOB] * 20_000}))

    listing = [sys.executable, "-P", "-m", "parallelrun", "job", "list", "--limit", "20000"]
    with subprocess.Popen(listing, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline().startswith("ID ")
        command.stdout.close()
        assert command.stderr.read() == ""
