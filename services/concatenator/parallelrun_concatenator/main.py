"""The command `parallelrun-concatenator`: supervises RQ workers that put outputs together."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Final

from parallelrun_concatenator.concatenate import concatenate
from parallelrun_concatenator.settings import ConcatenatorSettings
from parallelrun_core.datastores import registry as datastore_registry
from parallelrun_core.hosting.health import serve_health
from parallelrun_core.hosting.storage_totals import StorageTotals
from parallelrun_core.service import telemetry
from parallelrun_core.service.process import StopSignal, hide_memory
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.service.secret_source import SecretSource
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.shell_words import with_values
from parallelrun_core.store.connection import without_password
from parallelrun_core.store.fitness import wait_for_fit_redis
from parallelrun_core.store.rq.entries import CONCATENATE
from parallelrun_core.store.rq.workers import RqWorkers
from parallelrun_core.store.script_texts import read_all

_LINGER_S: Final = 2
"""For so long, a process that has made an output waits for the next one: small ones take less than forking it does."""


def main(argv: list[str] | None = None) -> None:
    """Run one concatenator until SIGTERM or SIGINT; exits with 3 when Redis is not fit for use."""
    hide_memory()
    settings = ConcatenatorSettings.from_command_line(argv)
    telemetry.configure("concatenator", log_format=settings.log_format)
    with closing(ProcessSecrets(settings.secrets_dir)) as secrets:  # RQ workers are forked from this process
        datastore_registry.configure(settings.root, secrets)
        _run(settings, secrets)
    telemetry.logger().info("stopped")


def _run(settings: ConcatenatorSettings, secrets: SecretSource) -> None:
    # Else each process that is forked for a job does it anew.
    JobSpec.model_rebuild()
    with_values("true", lambda kind, name: "")
    read_all()
    wait_for_fit_redis(settings)
    stop, storage = StopSignal(), StorageTotals()
    workers = RqWorkers(
        settings.redis_login,
        CONCATENATE,
        storage.handed_over(partial(concatenate, settings)),
        settings.concatenators,
        listen_s=settings.leader_seconds,
        linger_s=_LINGER_S,
        at_end=secrets.close,
    )
    serve_health(settings.health_port, ready=lambda: workers.connected, storage=storage.reading)
    telemetry.logger().info("started", redis=without_password(settings.redis_url), root=str(settings.root))
    workers.supervise(stop)


if __name__ == "__main__":
    main()
