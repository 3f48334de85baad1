"""The command `parallelrun-agent`."""

from __future__ import annotations

import signal

from parallelrun_agent.agent import Agent
from parallelrun_agent.settings import AgentSettings
from parallelrun_core.service import telemetry
from parallelrun_core.service.health import serve_health
from parallelrun_core.store.connection import without_password
from parallelrun_core.store.fitness import wait_for_fit_redis


def main(argv: list[str] | None = None) -> None:
    """Run one agent until SIGTERM or SIGINT; exits with 3 when Redis is not fit for use."""
    settings = AgentSettings.from_command_line(argv)
    telemetry.configure("agent", log_format=settings.log_format)
    wait_for_fit_redis(settings)
    try:
        agent = Agent(settings)
    except OSError as error:
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


if __name__ == "__main__":
    main()
