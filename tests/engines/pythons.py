"""Jobs that name images, whose Pythons and packages are not ours, on nodes that share what they have built."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

from parallelrun_core.folder.decisions import read_decisions
from parallelrun_core.layout import Logs
from tests.acceptance import engine as docker_engine
from tests.acceptance.http_user import zip_of
from tests.engines.images import ENTRY, with_environment, with_other_python
from tests.engines.nodes import Provisioned

_COME_S = 180


@dataclass(frozen=True)
class Report:
    """What two jobs found on their images at the same time, and a third one on the first image again."""

    engine: str
    rows: tuple[list[str], list[str]]
    is_right: bool
    """Whether each had its own Python with its own packages, and the third one the same as the first."""
    was_built: bool
    """Whether the first job's environment was built."""
    was_built_again: bool
    """Whether another node has built it for the third job."""

    @property
    def is_clean(self) -> bool:
        return self.is_right and self.was_built and not self.was_built_again

    def __str__(self) -> str:
        said = ",".join(row[0] for row in self.rows)
        right, again = ("yes" if each else "no" for each in (self.is_right, self.was_built_again))
        return f"images {self.engine} pythons={said} right={right} built_again={again}"


def tried(there: Provisioned) -> Report:
    """Run the jobs; each has a node of its own, as the nodes of the first two have gone before the third begins."""
    with closing(docker_engine.reach()) as client:
        one, (other, version) = with_environment(client), with_other_python(client)
    there.cluster.until(lambda: not there.ours(), "idle nodes are given back", _COME_S)
    first, second = _submit(there, image=one, pip=["toml"]), _submit(there, image=other)
    there.cluster.until(lambda: len(there.ours()) == 2, "both have nodes at the same time", _COME_S)
    row, row_of_other = _row(there, first), _row(there, second)
    there.cluster.until(lambda: not there.ours(), "idle nodes are given back", _COME_S)
    third = _submit(there, image=one, pip=["toml"])
    row_again = _row(there, third)
    assert _nodes(there, first) != _nodes(there, third)
    is_right = (
        row[1:] == ["six", "1.16.0", "toml", "True", "True"]
        and row_of_other[1:] == ["six", "1.17.0", "toml", "False", "True"]
        and row_of_other[0].startswith(version)
        and row_again == row
    )
    return Report(there.target.name, (row, row_of_other), is_right, _was_built(there, first), _was_built(there, third))


def _submit(there: Provisioned, **environment: Any) -> str:
    spec = {
        "entry_script": "entry.py", "inputs": str(there.cluster.files(1)), "compute": there.pool,
        "environment": environment,
    }  # fmt: skip
    return there.user.submit(spec, zip_of({"entry.py": ENTRY}))


def _row(there: Provisioned, job: str) -> list[str]:
    """The words of a job's only row."""
    there.user.completed(job, timeout_s=_COME_S)
    [row] = there.user.download(job, "parallel_run_step.txt").decode().splitlines()
    return row.split()


def _nodes(there: Provisioned, job: str) -> set[str]:
    return {outcome.node for outcome in read_decisions(there.cluster.folder(job).path)}


def _was_built(there: Provisioned, job: str) -> bool:
    """Whether a node has built the Python of a job."""
    logs = Logs(there.cluster.folder(job).logs)
    return any((logs.of_node(node) / "environment.txt").exists() for node in _nodes(there, job))
