"""All computes of a cluster: round by round, what jobs need, what there is, and what follows from that."""

from __future__ import annotations

import re
import secrets
import time
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Final

from parallelrun_core.computes.catalog import ComputeCatalog
from parallelrun_core.computes.definition import Compute
from parallelrun_core.computes.kinds import MANUAL
from parallelrun_core.computes.launch import Shape, compute_of
from parallelrun_core.durable_files import write_once
from parallelrun_core.errors import CorruptLog, InvalidInput, NewerSchema, NotFound
from parallelrun_core.layout import PRIVATE_FILE
from parallelrun_core.service import telemetry
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.connection import connect
from parallelrun_core.store.nodes import NodeRegistry
from parallelrun_core.store.provisioning import Provisioning, ProvisioningStatus
from parallelrun_core.store.registry import Registry
from parallelrun_provisioner.engines.interface import Engine, EngineEnvironment
from parallelrun_provisioner.jobs import JobRecords
from parallelrun_provisioner.lease import LeaseKeeper
from parallelrun_provisioner.pool import ClusterSnapshot, Pool
from parallelrun_provisioner.settings import ProvisionerSettings

log = telemetry.logger()

_ENGINES: Final = "parallelrun_provisioner.engines"
_FRESH_S: Final = 1.0
"""For how long all computes of a round are served by one look at Redis."""
_ROUNDS_PER_LEASE: Final = 2
_LEAVE_S: Final = 10.0
"""How long nodes have to leave by themselves before their engines are told to end them."""
RELEASE_S: Final = 35.0
"""How long giving back all nodes may take; an agent that is told to end takes 20 s for what it has in hand."""
_FILE: Final = "cluster.id"
_FORM: Final = re.compile(r"pr-[0-9a-f]{16}")


class Provisioner:
    """A provisioner. Of several, one acts, and the others wait for it to end."""

    def __init__(self, settings: ProvisionerSettings) -> None:
        self._settings = settings
        self._redis = connect(settings.redis_login)
        self._registry = Registry(self._redis)
        self._nodes = NodeRegistry(self._redis)
        self._provisioning = Provisioning(self._redis, lease_ms=settings.leader_ms)
        self._lease = LeaseKeeper(self._provisioning, settings.leader_seconds)
        self._catalog = ComputeCatalog(settings.root, settings.sealing_key)
        self._jobs = JobRecords(settings.root, self._registry)
        self._pools: dict[str, Pool] = {}
        """By name and kind: a deleted compute may have the name of one of another kind."""
        self._unfit: dict[str, str] = {}
        """What is wrong with computes that have no pool."""
        self._is_leading = False
        try:
            self._engine_env  # noqa: B018 - a secret that can't be read is said at once
        except InvalidInput as error:
            log.error("nodes_unfit", error=error.message)

    @cached_property
    def _engine_env(self) -> EngineEnvironment:
        """Return what engines are told. Raises InvalidInput: they can't be."""
        return self._settings.engine_environment(cluster_id(self._settings.root))

    @property
    def pause_s(self) -> float:
        """Seconds until the next round: while there is no compute, as many as the lease allows."""
        settings = self._settings
        if not self._is_leading or self._pools or self._unfit:
            return settings.poll_seconds
        return max(settings.poll_seconds, settings.leader_seconds / _ROUNDS_PER_LEASE)

    def round(self) -> None:
        """Compare what is wanted with what is there, and act. Raises redis-py's errors."""
        if not (self._is_leading and self._provisioning.stays()) and not self._begin_to_lead():
            return
        self._refresh_pools()
        if not self._pools and not self._unfit:
            return
        sight, began = self._sight(), time.monotonic()
        needs = self._jobs.needs(self._shape_of)
        for key, pool in list(self._pools.items()):
            if not self._provisioning.stays():
                return
            if time.monotonic() - began > _FRESH_S:  # the engine of another compute was slow
                sight, began = self._sight(), time.monotonic()
            with self._lease.keeping():
                status = pool.step(sight, needs.get(pool.compute.name, ()))
            if not pool.is_over:
                self._provisioning.publish(pool.compute.name, status)
            elif pool.is_empty:
                log.info("compute_forget_deleted", compute=pool.compute.name)
                self._catalog.forget_deleted(pool.compute)
                self._pools.pop(key).close()
        for name, why in self._unfit.items():
            self._provisioning.publish(name, ProvisioningStatus(at=sight.now, why=why, trouble=why))
        self._forget_strangers(sight)

    def _begin_to_lead(self) -> bool:
        """Be the one that acts if nobody else is; returns whether it is."""
        leads = self._provisioning.lead()
        if leads != self._is_leading:
            log.info("acts" if leads else "waits")
            self._is_leading = leads
            self._close()  # what was remembered may be old
        if leads:
            self._provisioning.serve(self._settings.served)
        return leads

    def release(self) -> None:
        """Give back the nodes of all computes, because nobody goes on after this. Raises redis-py's errors.

        Returns when nothing is left of them, or after `RELEASE_S`: then the log says what is.
        """
        if not self._provisioning.lead():
            return  # another one acts, and goes on
        self._refresh_pools()
        began, remaining = time.monotonic(), list(self._pools.values())
        while remaining and (passed_s := time.monotonic() - began) < RELEASE_S:
            sight = self._sight()
            with self._lease.keeping():
                remaining = [pool for pool in remaining if not pool.release(sight, by_force=passed_s > _LEAVE_S)]
            if remaining:
                time.sleep(self._settings.poll_seconds)  # an engine gives no sign
        for pool in remaining:
            log.warning("nodes_left", compute=pool.compute.name, nodes=pool.left)

    def resign(self) -> None:
        """Let another one act; nodes stay as they are."""
        self._lease.stop()
        self._close()
        if self._is_leading:
            self._provisioning.resign()

    def _sight(self) -> ClusterSnapshot:
        return ClusterSnapshot(
            now=self._registry.now(),
            nodes={info.node: (info, is_alive) for info, is_alive in self._nodes.all()},
            leaving=frozenset(self._nodes.asked_to_leave()),
            launches=self._provisioning.launches(),
        )

    def _close(self) -> None:
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    def _refresh_pools(self) -> None:
        """Have a pool for each compute whose nodes an engine provides, as it is defined now."""
        self._unfit = {}
        targets: dict[str, tuple[Compute, str, bool]] = {}
        for name in self._catalog.names():
            try:
                revision = self._catalog.version(name)  # first: an older one than the definition is replaced next time
                compute = self._catalog.get(name)
            except (CorruptLog, NewerSchema, NotFound, OSError) as error:
                self._unfit[name] = str(error)
                continue
            targets[_key(compute)] = compute, revision, False
        for compute in self._catalog.deleted():
            targets.setdefault(_key(compute), (compute, "", True))
        for key, (compute, revision, is_over) in targets.items():
            pool = self._pools.get(key)
            if pool is not None and (pool.compute, pool.revision, pool.is_over) == (compute, revision, is_over):
                continue
            if pool is not None:
                self._pools.pop(key).close()
            self._open(key, compute, revision, is_over=is_over)
        for key in self._pools.keys() - targets.keys():
            self._pools.pop(key).close()
        vanished = self._provisioning.statuses().keys() - set(self._catalog.names())
        self._provisioning.hide(vanished)

    def _open(self, key: str, compute: Compute, revision: str, *, is_over: bool) -> None:
        kind = key.partition("/")[2]
        if kind == MANUAL:
            return
        if not self._settings.serves(kind):
            served = ", ".join(self._settings.served)
            why = f"the provisioner starts no nodes of type {kind!r}, but of {served}: its setting --kinds says so"
            self._is_unfit(compute, why, is_over=is_over)
            return
        try:
            engine: Engine = getattr(import_module(f"{_ENGINES}.{kind}"), f"{kind.title()}Engine")(
                compute, self._engine_env
            )
        except Exception as error:  # a library or a setting of the engine is missing, or wrong
            self._is_unfit(compute, f"the engine {kind!r} can't be used: {error}", is_over=is_over)
            log.error("engine_unfit", compute=compute.name, error=str(error))
            return
        redis = self._provisioning, self._nodes
        settings = self._node_settings()
        pool = Pool(compute, engine, self._engine_env, redis, settings, revision=revision, is_over=is_over)
        pool.resume(self._provisioning.status(compute.name))
        self._pools[key] = pool

    def _is_unfit(self, compute: Compute, why: str, *, is_over: bool) -> None:
        """Show why a compute has no pool, unless it was deleted: another one may have its name by now."""
        if not is_over:
            self._unfit[compute.name] = why

    def _node_settings(self) -> dict[str, str]:
        """Return what agents must know that is no secret."""
        settings = self._settings
        variables = {
            "PARALLELRUN_REDIS_URL": self._engine_env.redis_url,
            "PARALLELRUN_ROOT": str(self._engine_env.root),
            "PARALLELRUN_LEASE_SECONDS": f"{settings.lease_seconds:g}",
            "PARALLELRUN_ALONE_SECONDS": f"{settings.node_alone_seconds:g}",
        }
        return variables | ({"PARALLELRUN_ALLOW_VOLATILE_REDIS": "true"} if settings.allow_volatile_redis else {})

    def _shape_of(self, name: str, spec: JobSpec) -> Shape:
        pool = next((each for each in self._pools.values() if each.compute.name == name and not each.is_over), None)
        return pool.compute.shape_of(spec) if pool is not None else Shape()

    def _forget_strangers(self, sight: ClusterSnapshot) -> None:
        """Nobody but pools asks nodes to leave: forget those that are of none of them, and gone."""
        names = {pool.compute.name for pool in self._pools.values()} | self._unfit.keys()
        strangers = [each for each in sight.leaving if compute_of(each) not in names]
        self._nodes.asked_no_more([each for each in strangers if not sight.nodes.get(each, (None, False))[1]])
        self._provisioning.forget([each for each, launch in sight.launches.items() if launch.compute not in names])


def _key(compute: Compute) -> str:
    return f"{compute.name}/{compute.kind}"


def cluster_id(root: Path) -> str:
    """The id in the root folder, which is drawn once, by whoever needs it first.

    Raises:
        CorruptLog: the file has something else in it.
        OSError: it can't be read or written.
    """
    path = root / _FILE
    if not path.exists():
        root.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            write_once(path, f"pr-{secrets.token_hex(8)}\n".encode(), mode=PRIVATE_FILE)
    text = path.read_text(encoding="ascii", errors="replace").strip()
    if not _FORM.fullmatch(text):
        raise CorruptLog(f"{path} is no id of a cluster: objects of engines that were marked with it can't be found")
    return text
