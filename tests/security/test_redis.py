"""Redis: nobody without a password does anything, and no service more than it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha1
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, ConnectionError, NoPermissionError, ResponseError

from parallelrun.embedded.cluster import Cluster as Embedded
from parallelrun_core.errors import InvalidInput
from parallelrun_core.store.connection import connect, without_password
from parallelrun_core.store.credentials import login, prepare, read_secret
from parallelrun_core.store.fitness import UnfitRedis, check
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.store.registry import Registry
from parallelrun_core.store.roles import Role, scripts_of
from tests.redis_server import SECRETS, RedisServer
from tests.security.attacks import redis as attacks

if TYPE_CHECKING:
    from tests.security.attack import Target

pytestmark = pytest.mark.integration

JOB = "job_00000000000000000000"
KEYS = JobKeys(JOB)
FOR_AGENTS = {
    KEYS.job, KEYS.ready, KEYS.messages, KEYS.leases, KEYS.twins, KEYS.tries, KEYS.lost, KEYS.sessions, KEYS.nodes,
    KEYS.outcomes, KEYS.at_work, KEYS.delayed,
}  # fmt: skip
NOBODY_MAY: dict[str, tuple[str, ...]] = {
    "forget everything": ("FLUSHALL",),
    "forget a database": ("FLUSHDB",),
    "change settings": ("CONFIG", "SET", "maxmemory", "1"),
    "read settings": ("CONFIG", "GET", "dir"),
    "run a script of its own": ("EVAL", "return redis.call('PING')", "0"),
    "run a function": ("FCALL", "f", "0"),
    "find keys": ("KEYS", "*"),
    "walk through keys": ("SCAN", "0"),
    "load code": ("MODULE", "LOAD", "/tmp/evil.so"),
    "debug the server": ("DEBUG", "SLEEP", "0"),
    "stop the server": ("SHUTDOWN", "NOSAVE"),
    "read users": ("ACL", "LIST"),
    "make a user": ("ACL", "SETUSER", "evil", "on", "nopass", "~*", "+@all"),
    "make it follow another": ("REPLICAOF", "127.0.0.1", "1"),
    "send data elsewhere": ("MIGRATE", "127.0.0.1", "1", KEYS.job, "0", "10"),
    "write a file": ("SAVE",),
    "watch others": ("MONITOR",),
    "end the connections of others": ("CLIENT", "KILL", "TYPE", "normal"),
    "hold up others": ("CLIENT", "PAUSE", "1"),
    "swap databases": ("SWAPDB", "0", "1"),
    "forget scripts": ("SCRIPT", "FLUSH"),
    "use keys of something else": ("HSET", "somebody:else", "a", "1"),
    "listen to channels": ("SUBSCRIBE", "c"),
    "give keys other names": ("RENAME", KEYS.ready, KEYS.leases),
    "copy a key": ("COPY", KEYS.ready, "stolen"),
    "restore a key": ("RESTORE", KEYS.ready, "0", "x"),
}
AN_AGENT_MAY_NOT: dict[str, tuple[str, ...]] = {
    "wake a master": ("LPUSH", "rq:queue:jobs", "x"),
    "put an entry into a queue": ("HSET", "rq:job:x", "data", "[]"),
    "read what masters remember": ("EXISTS", "parallelrun:known"),
    "take leadership": ("HSET", KEYS.leader, "a", "b"),
    "give mini-batches up": ("HSET", KEYS.given_up, "0", "1"),
    "write events": ("XADD", KEYS.events, "*", "event", "x"),
    "remove a job": ("DEL", KEYS.job),
    "let a job expire": ("EXPIRE", KEYS.job, "1"),
    "trim outcomes": ("XTRIM", KEYS.outcomes, "MAXLEN", "0"),
    "read outcomes": ("XREAD", "STREAMS", KEYS.outcomes, "0"),
}


@pytest.fixture(params=["embedded", "redis-server"])
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A server with the users of the services: Valkey and, if it is installed, Redis."""
    binary = None if request.param == "embedded" else request.param
    if binary is not None and not any((Path(each) / binary).exists() for each in os.get_exec_path()):
        pytest.skip("there is no redis-server on this machine")
    with RedisServer(binary=binary) as running:
        yield running


@contextmanager
def as_role(server: RedisServer, role: Role) -> Iterator[Redis]:
    with connect(login(server.url, role, SECRETS[role])) as client:
        yield client


@pytest.mark.parametrize("role", Role)
def test_no_service_may_do_what_none_needs(server: RedisServer, role: Role) -> None:
    check_what_is_denied(server, role, NOBODY_MAY)


def test_an_agent_may_not_do_what_the_others_do(server: RedisServer) -> None:
    check_what_is_denied(server, Role.AGENT, AN_AGENT_MAY_NOT)


def test_an_agent_may_touch_what_its_scripts_name_and_no_other_key_of_a_job(server: RedisServer) -> None:
    with as_role(server, Role.AGENT) as client:
        allowed = {key for key in KEYS.all() if not is_denied(client, ("EXISTS", key))}
    assert allowed == FOR_AGENTS


def test_an_agent_may_ask_to_join_a_job(server: RedisServer) -> None:
    with connect(server.url) as admin:
        admin.hset(KEYS.job, "state", "processing")
    with as_role(server, Role.AGENT) as client:
        registry = Registry(client)
        assert [registry.is_first_to_join(JOB) for _ in range(2)] == [True, False]
        assert not registry.is_first_to_join("job_that_is_gone")


def check_what_is_denied(server: RedisServer, role: Role, table: dict[str, tuple[str, ...]]) -> None:
    """Each of these is refused for want of permission, or isn't known to this server at all."""
    with as_role(server, role) as client:
        assert client.ping()
        allowed = [what for what, command in table.items() if not is_denied(client, command)]
    assert allowed == []


def is_denied(client: Redis, command: tuple[str, ...]) -> bool:
    try:
        client.execute_command(*command)  # type: ignore[no-untyped-call]
    except NoPermissionError:
        return True
    except ConnectionError:
        return False  # the server has stopped
    except ResponseError as error:
        # Of some, a server says first that nobody may; some servers don't have all of them.
        return "not allowed" in str(error) or "unknown command" in str(error).lower()
    return False


@pytest.mark.parametrize("role", Role)
def test_a_service_runs_only_the_scripts_of_its_role(server: RedisServer, role: Role) -> None:
    own = "return redis.call('SET', KEYS[1], 'x')"
    with as_role(server, role) as client, connect(server.url) as tester:
        tester.script_load(own)
        assert is_denied(client, ("EVALSHA", sha1(own.encode(), usedforsecurity=False).hexdigest(), "1", KEYS.job))
        hashes = {sha for each in Role for sha in scripts_of(each).values()} - set(scripts_of(role).values())
        assert [sha for sha in hashes if not is_denied(client, ("EVALSHA", sha, "1", KEYS.job))] == []
        check(client, may_forget=True, role=role)


@pytest.mark.parametrize("role", [Role.API, Role.MASTER, Role.AGENT])
def test_users_of_an_older_release_are_noticed_at_the_start(server: RedisServer, role: Role) -> None:
    """Their scripts have other hashes: nothing would work, and nobody would say why."""
    with connect(server.url) as tester:
        tester.execute_command("ACL", "SETUSER", role, "-evalsha")
    with as_role(server, role) as client, pytest.raises(UnfitRedis, match="redis-acl"):
        check(client, may_forget=True, role=role)


def test_who_has_no_name_or_a_wrong_password_gets_nothing(tmp_path: Path) -> None:
    with Embedded(tmp_path / "home") as cluster:
        socket = socket_of(cluster)
        with connect(f"unix://{socket}") as nobody:
            for command in (("PING",), ("INFO",), ("ACL", "LIST"), *NOBODY_MAY.values(), *AN_AGENT_MAY_NOT.values()):
                with pytest.raises((AuthenticationError, ResponseError), match=r"Authentication|not allowed"):
                    nobody.execute_command(*command)
        with connect(f"unix://api:{'0' * 64}@{socket}") as guessing, pytest.raises(AuthenticationError):
            guessing.ping()


def socket_of(cluster: Embedded) -> Path:
    assert cluster._socket_folder is not None
    return cluster._socket_folder.socket


def test_no_password_is_in_a_file_or_on_a_command_line(tmp_path: Path) -> None:
    with Embedded(tmp_path / "home") as cluster:
        words = [Path(f"/proc/{pid}/cmdline").read_text() for pid in cluster.pids().values()]
        folders = [tmp_path, socket_of(cluster).parent]
        words += [
            path.read_text(errors="replace") for folder in folders for path in folder.rglob("*") if path.is_file()
        ]
        assert len(cluster._redis_secrets) == len(Role)
        for role, secret in cluster._redis_secrets.items():
            assert not any(secret in text for text in words), role
        assert socket_of(cluster).with_name("users.acl").stat().st_mode & 0o077 == 0


class EmbeddedTarget:
    """An embedded cluster whose workers are the same user as its agents."""

    name = "embedded"
    is_apart = False

    def __init__(self, cluster: Embedded, folder: Path) -> None:
        self.url, self.token = cluster.url, cluster.token
        self._cluster = cluster
        self._folder = folder
        self.root = str(cluster.layout.root)
        self.inputs = folder / "inputs"
        self.inputs_there = str(self.inputs)

    def rows_of(self, script: str, **settings: object) -> list[str]:
        code, inputs = self._folder / "code", self._folder / "inputs"
        for path in (code, inputs):
            path.mkdir(exist_ok=True)
        (code / "entry.py").write_text(script)
        (inputs / "one.txt").write_text("1\n")
        with self._cluster.client() as client:
            job = client.jobs.create(
                {"code": str(code), "entry_script": "entry.py", "inputs": str(inputs), **settings}, upload_code=False
            )
            client.jobs.wait(job.id, timeout_s=60)
            paths = list(client.outputs.download_all(job.id, self._folder / job.id))
        return paths[0].read_text().splitlines()


@pytest.mark.parametrize(
    "play", [attacks.use_redis_without_a_password, attacks.administer_redis_as_an_agent], ids=lambda each: each.__name__
)
def test_code_of_a_job_gets_nothing_from_redis(play: Callable[[Target], str], tmp_path: Path) -> None:
    with Embedded(tmp_path / "home") as cluster:
        assert play(EmbeddedTarget(cluster, tmp_path)) == ""


# Secrets


def test_secrets_are_made_once_and_written_for_their_owner_only(tmp_path: Path) -> None:
    acl = tmp_path / "redis" / "users.acl"
    acl.parent.mkdir()
    first = {role: read_secret(path) for role, path in prepare(tmp_path, acl).items()}
    assert {role: read_secret(path) for role, path in prepare(tmp_path, acl).items()} == first
    assert len(set(first.values())) == len(Role)
    assert not any(secret in acl.read_text() for secret in first.values())
    assert all((tmp_path / role / "secret").stat().st_mode & 0o777 == 0o600 for role in Role)


def test_who_removes_a_secret_gets_another_one_and_the_rest_stays(tmp_path: Path) -> None:
    acl = tmp_path / "users.acl"
    before = {role: read_secret(path) for role, path in prepare(tmp_path, acl).items()}
    (tmp_path / "agent" / "secret").unlink()
    after = {role: read_secret(path) for role, path in prepare(tmp_path, acl).items()}
    assert {role for role in Role if before[role] != after[role]} == {Role.AGENT}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_secret_that_others_can_read_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    path.write_text("s" * 64)
    path.chmod(mode)
    with pytest.raises(InvalidInput, match="chmod 600"):
        read_secret(path)
    done = subprocess.run(
        [sys.executable, "-m", "parallelrun_master.main", "--redis-secret-file", str(path)],
        capture_output=True, check=False, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("--redis-secret-file:")
    assert "chmod 600" in done.stderr


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_a_secret_that_is_not_there_or_empty_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "secret"
    if text is not None:
        path.write_text(text)
        path.chmod(0o600)
    with pytest.raises(InvalidInput, match="secret"):
        read_secret(path)


@pytest.mark.parametrize(
    "url, expected",
    [
        ("redis://h:6379/0", "redis://agent:s%2Fs@h:6379/0"),
        ("unix:///tmp/x.sock?db=0", "unix://agent:s%2Fs@/tmp/x.sock?db=0"),
        ("redis://me:mine@h/0", "redis://me:mine@h/0"),
    ],
)
def test_a_secret_goes_into_the_url_unless_that_has_one(url: str, expected: str) -> None:
    assert login(url, "agent", "s/s") == expected
    assert login(url, "agent", "") == url


@pytest.mark.parametrize(
    "url, expected",
    [
        ("redis://me:canary@h:1/0", "redis://me:***@h:1/0"),
        ("redis://:canary@h", "redis://:***@h"),
        ("redis://:can@ary@h", "redis://:***@h"),
        ("unix:///s.sock?db=0&password=canary&x=1", "unix:///s.sock?db=0&password=***&x=1"),
        ("unix:///s.sock?Password=canary", "unix:///s.sock?Password=***"),
        ("rediss://h?ssl_keyfile=k&ssl_password=can#ary&db=1", "rediss://h?ssl_keyfile=k&ssl_password=***&db=1"),
        ("rediss://h?ssl%5fpass%77ord=canary", "rediss://h?ssl%5fpass%77ord=***"),
        ("unix://me:canary@/s.sock", "unix://me:***@/s.sock"),
        ("unix:///s.sock?db=0", "unix:///s.sock?db=0"),
        ("redis://h:6379/0", "redis://h:6379/0"),
    ],
)
def test_no_password_of_a_url_is_logged(url: str, expected: str) -> None:
    assert without_password(url) == expected
