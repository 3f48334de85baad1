"""Templates that a test's own process starts, and that end with their test."""

from __future__ import annotations

import ctypes
import select
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from unittest.mock import patch

from parallelrun_agent.workers import template_process
from parallelrun_agent.workers.orphans import Orphans
from parallelrun_agent.workers.template_process import TemplateProcess
from parallelrun_core.service.process import become_subreaper
from tests.integration.worker.worker_harness import PATIENCE_S, key_of

_PR_SET_CHILD_SUBREAPER = 36


@contextmanager
def as_parent() -> Iterator[None]:
    """Within this context, this process is the parent of what its descendants leave behind, as an agent is."""
    assert become_subreaper()
    try:
        with patch.multiple(template_process, _ANSWER_S=PATIENCE_S, _END_S=PATIENCE_S):  # the machine may be slow
            yield
    finally:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@contextmanager
def template_of(
    folder: Path, script: str, env: Mapping[str, str] = MappingProxyType({}), *, orphans: Orphans | None = None
) -> Iterator[TemplateProcess]:
    """A template of this script."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "score.py").write_text(textwrap.dedent(script))
    with as_parent():
        template = TemplateProcess.start(key_of(folder, **env), (orphans or Orphans()).is_worker)
        try:
            yield template
        finally:
            template.close()


def report_of(template: TemplateProcess) -> str:
    """Wait for what it reports."""
    ready, _, _ = select.select([template.channel], [], [], PATIENCE_S)
    assert ready, "it reports nothing"
    return template.report()
