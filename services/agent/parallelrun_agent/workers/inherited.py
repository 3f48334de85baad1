"""The environment variables that workers inherit from their agent, before those of their job."""

from __future__ import annotations

import os
import sys

from parallelrun_agent.settings import AgentSettings
from parallelrun_agent.users.worker_user import SAME_USER
from parallelrun_agent.workers.survivors import MARK, mark
from parallelrun_agent.workers.template_process import TemplateKey
from parallelrun_core.service import secret_sources
from parallelrun_core.service.children import without_installers_secrets
from parallelrun_core.storage import schemes

_HIDDEN = ("PARALLELRUN_", "REDIS_")
_CREDENTIALS = (
    *schemes.CREDENTIALS,
    "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
)  # fmt: skip
"""What variables begin with that let their owner into stores, or to a collector of traces, as this agent."""
_TRACE = ("TRACEPARENT", "TRACESTATE")
"""The trace of whoever has started this agent, to which no job belongs."""


def inherited_variables(settings: AgentSettings) -> dict[str, str]:
    """The agent's own environment without our settings, which hold the password of Redis (reference §3.7), and without
    its credentials for stores, sources of secrets and package indexes."""
    credentials = () if settings.pass_credentials else (*_CREDENTIALS, *secret_sources.credentials())
    hidden = (*_HIDDEN, *_TRACE, *credentials)
    inherited = without_installers_secrets(os.environ)
    return {name: value for name, value in inherited.items() if not name.startswith(hidden)}


def early_key(settings: AgentSettings) -> TemplateKey:
    """The key of a template for a job that says nothing about Python, user or variables, without its script."""
    environment = {**inherited_variables(settings), MARK: mark(settings.local_folder)}
    return TemplateKey(
        owner="",
        job_id="",
        python=sys.executable,
        user=SAME_USER,
        code="",
        entry_script="",
        reads_tables=False,
        environment=tuple(sorted(environment.items())),
    )
