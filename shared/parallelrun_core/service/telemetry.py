"""Structured logs: one JSON object per line, each with a stable `action` that tests and tools may rely on."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog
from structlog.typing import FilteringBoundLogger

from parallelrun_core.untrusted.sanitize import visible


def configure(service: str, *, log_format: str = "json") -> None:
    """Set up logging for a process; call once, before anything is logged."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _render_text if log_format == "text" else _json_renderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service)
    of_libraries = logging.StreamHandler(sys.stderr)
    of_libraries.setFormatter(_VisibleWords("%(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[of_libraries], force=True)


def logger(**context: Any) -> FilteringBoundLogger:
    """A logger; call it as `log.info("lease_lost", job_id=…)`: the first argument is the action."""
    bound: FilteringBoundLogger = structlog.get_logger(**context)
    return bound


class _VisibleWords(logging.Formatter):
    """Lines of libraries: nothing in them controls the terminal of who reads the log."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def _render_text(_log: Any, _method: str, event: Any) -> str:
    """Return a line for people: when, how grave, which action, and all that belongs to it by name."""
    exception = event.pop("exception", "")
    head = f"{event.pop('timestamp')} [{event.pop('level'):<8}] {event.pop('event'):<30}"
    line = visible(" ".join([head, *(f"{name}={_word(event[name])}" for name in sorted(event))]), lines=False)
    return f"{line}\n{visible(exception)}" if exception else line


def _word(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() and " " not in value else repr(value)


def _json_renderer() -> Any:
    rename = structlog.processors.EventRenamer("action")
    render = structlog.processors.JSONRenderer()

    def render_action(log: Any, method: str, event: Any) -> Any:
        return render(log, method, rename(log, method, event))

    return render_action
