"""The command `parallelrun-agent`."""

from __future__ import annotations

import os
import signal
from contextlib import closing

from parallelrun_agent.agent import Agent
from parallelrun_agent.environments.image_python import NoPython
from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.users.home import home_of, keep_to_closed_home
from parallelrun_core.datastores import registry as datastore_registry
from parallelrun_core.hosting.health import serve_health
from parallelrun_core.service import telemetry
from parallelrun_core.service.process import hide_memory
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.service.secret_source import SecretSource
from parallelrun_core.store.connection import without_password
from parallelrun_core.store.fitness import EXIT_ALONE, wait_for_fit_redis


def main(argv: list[str] | None = None) -> None:
    """Run one agent until SIGTERM or SIGINT; exits with 3 when Redis is not fit for use, with 4 when left alone."""
    hide_memory()
    settings = AgentSettings.from_command_line(argv)
    telemetry.configure("agent", log_format=settings.log_format)
    if settings.run_as:
        _become(settings.run_as)
    if settings.worker_uids:
        keep_to_closed_home()
    with closing(ProcessSecrets(settings.secrets_dir)) as secrets:
        datastore_registry.configure(settings.root, secrets)
        _run(settings, secrets)


def _run(settings: AgentSettings, secrets: SecretSource) -> None:
    wait_for_fit_redis(settings, most_s=settings.alone_seconds)
    try:
        agent = Agent(settings, secrets)
    except (OSError, NoPython) as error:
        raise SystemExit(f"parallelrun-agent: {error}") from None
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, agent.stop)
    serve_health(settings.health_port, ready=lambda: agent.connected)
    telemetry.logger().info(
        "started",
        node=settings.node,
        slots=settings.slots,
        redis=without_password(settings.redis_url),
        root=str(settings.root),
    )
    agent.run()
    if agent.was_left_alone:
        raise SystemExit(EXIT_ALONE)


def _become(run_as: str) -> None:
    from parallelrun_agent.users import rights

    uid, gid = map(int, run_as.split(":"))
    try:
        rights.become(uid, gid)
    except OSError as error:
        raise SystemExit(f"parallelrun-agent: --run-as: {error}") from None
    hide_memory()  # a change of users may have ended that
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        del os.environ[name]  # root's own folders, which this user may not even look into
    os.environ["HOME"] = home_of(uid)


if __name__ == "__main__":
    main()
