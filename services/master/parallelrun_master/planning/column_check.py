"""Has a child process look at the first files of a table as a worker does, before it is cut.

It checks that a table has the columns which its steps need, or each mini-batch would fail by itself, and warns of those
that they name in vain. Where any row may have columns that no other has, as in JSON lines, it only warns. And it finds
the columns of a text table in a store: of any other, the first worker does it. Both are
`parallelrun_worker.tables.columns`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec

from parallelrun_core.errors import InvalidInput
from parallelrun_core.mltable.input_plan import InputPlan
from parallelrun_core.mltable.steps import ConvertColumnTypes, Filter, KeepColumns
from parallelrun_core.problems import did_you_mean
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.wire.data_warnings import DataWarning
from parallelrun_master.planning.file_server import FileServer
from parallelrun_master.planning.formats import format_of

_NAMING: Final = (Filter, KeepColumns, ConvertColumnTypes)
"""Steps that name columns."""
_PATH: Final = "Path"
_BY_OPTION: Final = "include_path_column: true, an option of the read step, makes it"
_MOST: Final = 20
"""Columns that a warning names."""
_WAIT_S: Final = 0.05

Record = dict[str, Any]


def check_columns(
    plan: InputPlan, rule: PathRule | None = None, warn: Callable[[DataWarning], object] = lambda _: None
) -> Iterator[None]:
    """Check; yields while there is nothing to do but wait. Files that can't be read are reported when they are needed.

    Args:
        rule: which files may be opened; None: any.
        warn: called for each column that a step names in vain, and could do without.

    Raises:
        InvalidInput: none of the first files has a column that a step needs.
    """
    if not plan.sample or not any(isinstance(step, _NAMING) for step in plan.steps):
        return
    answer = yield from _answer(plan, rule)
    for step, name, columns, left_out_by in answer.get("missing", ()):
        if left_out_by:
            event = f"{step} names it, and a {left_out_by} before it has left it out"
            hint = f"put {step} before that step"
        else:
            event = f"{step} names it, and the first files have no such column"
            those = f"there are {', '.join(columns[:_MOST])}"
            hint = _BY_OPTION if name == _PATH else did_you_mean(name, columns, those)
        warn(DataWarning("no_such_column", "", name, event, hint))


def freeze_columns(plan: InputPlan, schema: Path, rule: PathRule | None = None) -> Iterator[None]:
    """Find the columns of a text table whose first files workers can't read; yields as `check_columns`.

    Args:
        schema: where they are to be frozen.

    Raises:
        InvalidInput: the first files can't be read as the table says.
    """
    if plan.is_staged and format_of(plan.kind).is_inferred:
        yield from _answer(plan, rule, schema=str(schema))


def _answer(plan: InputPlan, rule: PathRule | None, **fields: str) -> Generator[None, None, dict[str, Any]]:
    """The answer about columns; empty if there is none. Raises InvalidInput with the error in it."""
    answer_text = yield from _asking("columns", plan, rule, lambda record: {"plan": record, **fields})
    answer: dict[str, Any] = json.loads(answer_text or b"{}")
    if error := answer.get("error"):
        raise InvalidInput(f"input {plan.name!r}: {error}")
    return answer


def ask_worker(module: str, plan: InputPlan, rule: PathRule | None, to_request: Callable[[Record], Record]) -> bytes:
    """Return what a module of `parallelrun_worker.tables` answers; nothing if it fails.

    Args:
        rule: which files may be opened; None: any.
        to_request: makes what it reads on standard input of the plan as it reads it.
    """
    asking = _asking(module, plan, rule, to_request)
    while True:
        try:
            next(asking)
        except StopIteration as end:
            return bytes(end.value)


def _asking(
    module: str, plan: InputPlan, rule: PathRule | None, to_request: Callable[[Record], Record]
) -> Generator[None, None, bytes]:
    with ExitStack() as stack:
        record = bounded_record(plan, rule)
        fds: tuple[int, ...] = ()
        server = stack.enter_context(FileServer(rule)) if plan.is_staged else None
        if server is not None:
            record, fds = {**record, "asks": server.fd}, (server.fd,)
        command = [sys.executable, "-P", "-m", f"parallelrun_worker.tables.{module}"]
        child = stack.enter_context(
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=fds
            )
        )
        if server is not None:
            server.pass_on()
        answer_text = yield from _said(child, json.dumps(to_request(record)).encode())
    return answer_text if child.returncode == 0 else b""


def _said(child: subprocess.Popen[bytes], request_text: bytes | None) -> Generator[None, None, bytes]:
    try:
        while True:
            try:
                return child.communicate(request_text, timeout=_WAIT_S)[0]
            except subprocess.TimeoutExpired:
                request_text = None  # it has been sent, or will be
                yield
    finally:
        child.kill()


def bounded_record(plan: InputPlan, rule: PathRule | None) -> Record:
    """A plan as processes of a master read it, which have its rights."""
    record: Record = msgspec.to_builtins(plan)
    return record if rule is None or plan.is_staged else {**record, "may_open": rule.readable}
