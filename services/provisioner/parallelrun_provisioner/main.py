"""The command `parallelrun-provisioner`: asks engines for nodes, and gives them back."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from parallelrun_core.hosting.health import serve_health
from parallelrun_core.service import telemetry
from parallelrun_core.service.pacing import Backoff
from parallelrun_core.service.process import StopSignal, hide_memory
from parallelrun_core.store.connection import CONNECTION_ERRORS, without_password
from parallelrun_core.store.fitness import wait_for_fit_redis
from parallelrun_provisioner.provisioner import Provisioner
from parallelrun_provisioner.settings import ProvisionerSettings

_LONGEST_PAUSE_S: Final = 2.0


def main(argv: list[str] | None = None) -> None:
    """Run one provisioner until SIGTERM or SIGINT; exits with 3 when Redis is not fit for use."""
    hide_memory()
    settings = ProvisionerSettings.from_command_line(argv)
    telemetry.configure("provisioner", log_format=settings.log_format)
    log = telemetry.logger()
    wait_for_fit_redis(settings)
    stop = StopSignal()
    provisioner = Provisioner(settings)
    is_well = True
    serve_health(settings.health_port, ready=lambda: is_well)
    log.info("started", redis=without_password(settings.redis_url), root=str(settings.root))
    backoff = Backoff(0.1, _LONGEST_PAUSE_S)
    while not stop.came:
        try:
            provisioner.round()
        except CONNECTION_ERRORS as error:
            log.warning("redis_away", error=str(error))
            is_well = False
            stop.wait(backoff.next_s())
            continue
        is_well = True
        backoff.reset()
        stop.wait(provisioner.pause_s)
    with suppress(*CONNECTION_ERRORS):
        if settings.release_on_stop:
            provisioner.release()
        provisioner.resign()
    log.info("stopped")


if __name__ == "__main__":
    main()
