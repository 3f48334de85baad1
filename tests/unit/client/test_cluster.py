"""What a cluster on this machine needs before its services start, and what it says when they don't."""

import socket
from pathlib import Path

import pytest

from parallelrun.embedded.cluster import Cluster, next_free_port, reserve_port, tail_of
from parallelrun.errors import ClusterFailed


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


def test_the_port_after_one_that_is_taken_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert next_free_port(port) > port
    assert next_free_port(0) == 0
