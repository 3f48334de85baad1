"""The command `parallelrun-concatenator`: supervises RQ workers that put outputs together."""

from __future__ import annotations

import os

from parallelrun_concatenator import concatenate as _preloaded  # noqa: F401 - so that forked processes start at once
from parallelrun_concatenator.concatenate import SETTINGS
from parallelrun_concatenator.settings import ConcatenatorSettings
from parallelrun_core.service import telemetry
from parallelrun_core.service.health import serve_health
from parallelrun_core.service.process import StopSignal
from parallelrun_core.store.connection import CONNECTION_ERRORS, connect, without_password
from parallelrun_core.store.fitness import wait_for_fit_redis
from parallelrun_core.store.rq_queues import CONCATENATE_QUEUE
from parallelrun_core.store.rq_workers import RqWorkers

_CHECK_S = 1.0


def main(argv: list[str] | None = None) -> None:
    """Run one concatenator until SIGTERM or SIGINT; exits with 3 when Redis is not fit for use."""
    settings = ConcatenatorSettings.from_command_line(argv)
    telemetry.configure("concatenator", log_format=settings.log_format)
    log = telemetry.logger()
    wait_for_fit_redis(settings)
    os.environ[SETTINGS] = settings.model_dump_json()
    stop = StopSignal()
    workers = RqWorkers(settings.redis_url, CONCATENATE_QUEUE, settings.concatenators, listen_s=settings.leader_seconds)
    redis = connect(settings.redis_url)
    connected = False
    serve_health(settings.health_port, ready=lambda: connected)
    log.info("started", redis=without_password(settings.redis_url), root=str(settings.root))
    while not stop.came:
        try:
            redis.ping()
            workers.keep_running()
            connected = True
        except CONNECTION_ERRORS as error:
            connected = False
            log.warning("redis_away", error=str(error))
        stop.wait(_CHECK_S)
    workers.stop()
    log.info("stopped")


if __name__ == "__main__":
    main()
