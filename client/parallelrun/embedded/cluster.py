"""An embedded cluster, from start to stop.

with Cluster(Path("work"), nodes=2, processes=2) as cluster, cluster.client() as client:
    job = client.jobs.create("job.yml", upload_code=False)
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from parallelrun.background.lock import FolderLock
from parallelrun.embedded import redis_server
from parallelrun.embedded.begun_template import BegunTemplate, new_mark
from parallelrun.embedded.launcher import Service
from parallelrun.embedded.listening import Listener
from parallelrun.embedded.services import (
    REDIS,
    ClusterLayout,
    cluster_services,
    node_names,
    provisioner_service,
    redis_service,
    usable_cpus,
)
from parallelrun.embedded.socket_folder import SocketFolder
from parallelrun.embedded.supervisor import Supervisor
from parallelrun.errors import ClusterFailed, ParallelRunError
from parallelrun_core.durable_files import write_once
from parallelrun_core.store.credentials import new_secrets, prepare, read_secret
from parallelrun_core.store.roles import Role, acl_file

if TYPE_CHECKING:
    from parallelrun.client import Client

READY_WITHIN_S: Final = 60.0
_PORTS_TRIED: Final = 50
_LAST_PORT: Final = 65_535
_POLL_EVERY_S: Final = 0.02
_LEADING: Final = ("master",)
"""Services that have begun once they have a worker."""
_HOPELESS_DEATHS: Final = 3
_HOPELESS_DEATHS_LATER: Final = 6
_TAIL_LINES: Final = 15
_TAIL_BYTES: Final = 8192
_LOCK_PATIENCE_S: Final = 5.0


class Cluster:
    """Redis, API, master, concatenator and agents, as child processes. Use it in a `with` statement.

    Args:
        home: folder for all its data and logs, created if missing. Outputs are on the same file system.
        nodes: number of agents on this machine.
        listen: HOST or HOST:PORT, on which nodes of other machines reach its Redis server by TLS; empty: nowhere.
        has_computes: start a provisioner, which asks engines for the nodes of computes.
        processes: workers per node; by default, the CPUs are divided between the nodes.
        jobs: how many jobs it can process at the same time.
        port: of the API, on the loopback interface; 0: any free one.
        may_forget: accept a server at `REDIS_URL` that loses everything when it restarts.
        assets: the root folder of the models that scripts find by name; None: its own.
        preload: the modules that workers of the first job begin with, which nodes import before it comes.
        token: with which requests are made; empty: a new one.
        template: the template of services, if one was begun; it ends with this cluster.
        on_note: called with one line when something unusual happens.

    The children end with this process, however it ends.
    """

    def __init__(
        self,
        home: str | Path,
        *,
        nodes: int = 1,
        listen: str = "",
        has_computes: bool = False,
        processes: int | None = None,
        jobs: int = 8,
        port: int = 0,
        may_forget: bool = False,
        assets: Path | None = None,
        preload: Sequence[str] = (),
        token: str = "",
        template: BegunTemplate | None = None,
        on_note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.layout = ClusterLayout(home=Path(home).absolute())
        self.nodes = nodes
        self.processes = processes or max(1, usable_cpus() // max(1, nodes))
        self.token = token or secrets.token_urlsafe(32)
        self.listener = Listener.parse(listen, self.layout.tls) if listen else None
        self._has_computes = has_computes
        self._jobs = jobs
        self._port = port
        self._may_forget = may_forget
        self._assets = assets
        self._preload = preload
        self._redis_secrets: dict[Role, str] = {}
        """The password of each role, on a server of our own."""
        self._external_url = os.environ.get("REDIS_URL", "")
        self._template = template
        self._on_note = on_note
        self._supervisor: Supervisor | None = None
        self._socket_folder: SocketFolder | None = None
        self._lock: FolderLock | None = None
        self._reserved: socket.socket | None = None
        self._redis_url = ""

    @property
    def url(self) -> str:
        """The URL of the API, once the cluster has been started."""
        return f"http://127.0.0.1:{self._port}"

    def client(self) -> Client:
        from parallelrun.client import Client

        return Client(self.url, self.token)

    def start(self) -> None:
        """Start everything; returns when jobs can be submitted and every node is there.

        Raises:
            ClusterFailed: there is no Redis server, the port is taken, another cluster uses this folder, or a service
                doesn't start. Everything has been stopped again.
        """
        self.layout.create()
        # The Redis server of a cluster that was killed a moment ago may still be ending.
        self._lock = FolderLock.take(self.layout.home / "lock", patience_s=_LOCK_PATIENCE_S)
        if self._lock is None:
            raise ClusterFailed(f"Another cluster is already using {self.layout.home}.")
        self._socket_folder = SocketFolder.create()
        begun, mark = self._template, self._template.mark if self._template else new_mark()
        self._supervisor = Supervisor(
            logs=self.layout.logs,
            folder=self.layout.home,
            mark=mark,
            scratch=self._socket_folder.path,
            begin_template=lambda: begun or BegunTemplate.begin(mark),
            on_death=self._on_note,
        )
        try:
            self._reserved = reserve_port(self._port)
            self._port = self._reserved.getsockname()[1]
            deadline = time.monotonic() + READY_WITHIN_S
            self._redis_url = self._start_redis(self._supervisor, self._socket_folder, self._lock, deadline)
            # What a client imports takes as long as the template of services still needs.
            self._supervisor.start(self._services(self._redis_url), meanwhile=lambda: self.client().close())
            self._wait_until_ready(self._supervisor, deadline)
        except BaseException:
            self.kill()
            raise

    def wait_for_leaders(self) -> None:
        """Wait until jobs are led, too. `start` doesn't: they may be submitted before.

        Raises:
            ClusterFailed: the master doesn't start.
        """
        if self._supervisor:
            self._wait_until_ready(self._supervisor, time.monotonic() + READY_WITHIN_S, leading=_LEADING)

    def add_nodes(self, count: int) -> None:
        """Start agents of more nodes, with as many workers as the others have; returns once each has a process.

        Raises:
            ClusterFailed: the cluster isn't running.
        """
        if self._supervisor is None:
            raise ClusterFailed("The cluster isn't running: start it first.")
        before, self.nodes = self.nodes, self.nodes + count
        added = set(node_names(self.nodes)[before:])
        self._supervisor.start([service for service in self._services(self._redis_url) if service.name in added])

    def stop(self) -> None:
        """Stop everything in order; kill what takes too long, or everything if interrupted. Twice does no harm."""
        try:
            if self._supervisor:
                self._supervisor.stop()
        except BaseException:
            self.kill()
            raise
        self._release()

    def kill(self) -> None:
        """Kill everything at once."""
        if self._supervisor:
            self._supervisor.kill()
        self._release()

    def forget(self, job_id: str) -> None:
        """Remove a job that has ended from a Redis server that outlives this cluster."""
        if self._external_url:
            redis_server.forget_job(self._external_url, job_id)

    def check(self) -> None:
        """Check that the services still work.

        Raises:
            ClusterFailed: one of them keeps dying.
        """
        if self._supervisor:
            self._check(self._supervisor, float("inf"), [], hopeless=_HOPELESS_DEATHS_LATER)

    def pids(self) -> dict[str, int]:
        """The process id of each service that runs right now."""
        return self._supervisor.pids() if self._supervisor else {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _services(self, redis_url: str) -> list[Service]:
        services = cluster_services(
            self.layout,
            redis_url=redis_url,
            port=self._port,
            token=self.token,
            nodes=self.nodes,
            slots=self.processes,
            jobs=self._jobs,
            may_forget=self._may_forget,
            assets=self._assets,
            preload=self._preload,
            redis_secrets=self._redis_secrets,
        )
        if self._has_computes:
            services.append(
                provisioner_service(
                    self.layout,
                    redis_url=redis_url,
                    node_redis_url=self.listener.url if self.listener else "",
                    redis_secrets=self._redis_secrets,
                )
            )
        return services

    def _start_redis(self, supervisor: Supervisor, folder: SocketFolder, lock: FolderLock, deadline: float) -> str:
        """Start a Redis server unless one is given; returns its URL."""
        if self._external_url:
            if self.listener:
                raise ClusterFailed("--listen is for a server that is started here, and REDIS_URL names one: unset it.")
            redis_server.check_external(self._external_url, may_forget=self._may_forget)
            return self._external_url
        binary = redis_server.find_binary(needs_tls=self.listener is not None)
        if self.listener:
            self.listener.check()
            self.listener.prepare()
            self.layout.secrets.mkdir(mode=0o700, exist_ok=True)
            files = prepare(self.layout.secrets, folder.users)  # kept: nodes may outlive this process
            self._redis_secrets = {role: read_secret(path) for role, path in files.items()}
        else:
            self._redis_secrets = new_secrets()
            write_once(folder.users, acl_file(self._redis_secrets).encode(), mode=0o600)
        server = redis_server.RedisServer(
            binary=binary,
            listener=self.listener,
            socket=folder.socket,
            data=self.layout.redis,
            acl=folder.users,
            login=(Role.API, self._redis_secrets[Role.API]),
        )
        supervisor.start([redis_service(server, may_forget=self._may_forget, locks=(lock.fd, folder.fd))])
        while not server.wait(0.5):
            self._check(supervisor, deadline, [REDIS])
        return server.url

    def _wait_until_ready(self, supervisor: Supervisor, deadline: float, leading: Sequence[str] = ()) -> None:
        missing = ["api"]
        with self.client() as client:
            while missing:
                self._check(supervisor, deadline, missing)
                time.sleep(_POLL_EVERY_S)  # services give no sign when they are ready
                missing = self._missing(client) or supervisor.childless(leading) or supervisor.unsteady()

    def _missing(self, client: Client) -> list[str]:
        if not client.is_ready():
            return ["api"]
        try:
            alive = {node.node for node in client.nodes.list() if node.is_alive}
        except ParallelRunError:
            return ["api"]
        return [name for name in node_names(self.nodes) if name not in alive]

    def _check(
        self, supervisor: Supervisor, deadline: float, missing: list[str], *, hopeless: int = _HOPELESS_DEATHS
    ) -> None:
        """Check that it is still worth waiting.

        Raises:
            ClusterFailed: it isn't; the message has the end of the log that says why.
        """
        dying = [name for name, deaths in supervisor.deaths().items() if deaths >= hopeless]
        if not dying and time.monotonic() < deadline:
            return
        name = (dying or missing)[0]
        log = supervisor.log_of(name)
        trouble = "keeps dying" if dying else f"was not ready within {READY_WITHIN_S:.0f} s"
        raise ClusterFailed(f"The service {name} {trouble}. The end of {log}:\n{tail_of(log)}")

    def _release(self) -> None:
        if self._template:
            self._template.close()  # no service was started that would have ended it
        if self._socket_folder:
            self._socket_folder.remove()
        if self._lock:
            self._lock.release()
        if self._reserved:
            self._reserved.close()


def reserve_port(port: int) -> socket.socket:
    """A socket that is bound to this port of the loopback interface; 0: to any free one.

    While it is open, the port is not handed out as a free one, but a server that asks for this port can listen on it.

    Raises:
        ClusterFailed: the port is in use.
    """
    reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # As the server does. It lets both bind the port, even one that was in use a moment ago.
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        reserved.bind(("127.0.0.1", port))
    except OSError as error:
        reserved.close()
        raise ClusterFailed(f"Port {port} is taken; choose another one with --port.") from error
    return reserved


def tail_of(log: Path) -> str:
    """The last lines of a service's log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-_TAIL_LINES:])
    except FileNotFoundError:
        return "(empty)"


def next_free_port(port: int) -> int:
    """The first port of this machine that is free, from this one on; 0 is returned unchanged.

    Raises:
        ClusterFailed: none of the next ones is free.
    """
    last = min(port + _PORTS_TRIED, _LAST_PORT)
    for number in range(port, last + 1) if port else ():
        try:
            reserve_port(number).close()
        except ClusterFailed:
            continue
        return number
    if port:
        raise ClusterFailed(f"The ports {port} to {last} are taken; choose another one with --port.")
    return port
