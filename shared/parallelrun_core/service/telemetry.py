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
    text = log_format == "text"
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *(_text_renderers() if text else [_json_renderer()]),
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


def _visible_words(_log: Any, _method: str, event: Any) -> Any:
    """Escape our own lines as text; JSON escapes what it must, and a line of it stays a line."""
    words = {"exception": visible(event["exception"])} if "exception" in event else {}
    return {
        name: visible(value, lines=False) if isinstance(value, str) else value for name, value in event.items()
    } | words


def _text_renderers() -> list[Any]:
    return [_visible_words, structlog.dev.ConsoleRenderer(colors=False, event_key="action")]


def _json_renderer() -> Any:
    rename = structlog.processors.EventRenamer("action")
    render = structlog.processors.JSONRenderer()

    def render_action(log: Any, method: str, event: Any) -> Any:
        return render(log, method, rename(log, method, event))

    return render_action
