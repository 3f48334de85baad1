"""The server that a client uses when its URL or token is not given."""

from pathlib import Path

import pytest

from parallelrun import Client, ConnectionFailed
from parallelrun.background import state
from parallelrun.background.state import BackgroundCluster
from parallelrun.client import server_to_use

HERE = BackgroundCluster(url="http://127.0.0.1:1", token="of-here", pid=1, home="/h", started="today")


@pytest.mark.parametrize(
    "given, environment, used",
    [
        (("http://a:1", "t"), {"PARALLELRUN_URL": "http://b:2", "PARALLELRUN_TOKEN": "u"}, ("http://a:1", "t")),
        (("http://a:1",), {"PARALLELRUN_TOKEN": "u"}, ("http://a:1", "u")),
        ((), {"PARALLELRUN_URL": "http://b:2", "PARALLELRUN_TOKEN": "u"}, ("http://b:2", "u")),
        ((), {"PARALLELRUN_URL": "http://b:2"}, ("http://b:2", "")),
        ((), {"PARALLELRUN_URL": "http://127.0.0.1:1/"}, ("http://127.0.0.1:1/", "of-here")),
        (("http://localhost:1",), {}, ("http://localhost:1", "of-here")),
        (("http://127.0.0.1:1",), {"PARALLELRUN_TOKEN": "u"}, ("http://127.0.0.1:1", "u")),
        (("http://127.0.0.1:11",), {}, ("http://127.0.0.1:11", "")),
        (("https://127.0.0.1:1",), {}, ("https://127.0.0.1:1", "")),
        ((), {}, ("http://127.0.0.1:1", "of-here")),
        ((), {"PARALLELRUN_TOKEN": "of-anna"}, ("http://127.0.0.1:1", "of-anna")),
        (("", "mine"), {}, ("http://127.0.0.1:1", "mine")),
    ],
)
def test_what_is_given_wins_then_the_environment_then_the_cluster_here(
    monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], environment: dict[str, str], used: tuple[str, str]
) -> None:
    for name in ("PARALLELRUN_URL", "PARALLELRUN_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(state, "running", lambda: HERE)

    assert server_to_use(*given) == used
    with Client(*given) as client:
        assert client.url == used[0].rstrip("/")


def test_without_any_the_error_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PARALLELRUN_URL", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(ConnectionFailed, match="set PARALLELRUN_URL, or start one with `parallelrun up`"):
        Client()
