"""Packages that have code of theirs run when they are installed, or that pass off as installed what is not."""

from __future__ import annotations

from functools import partial

from tests.acceptance.http_user import HttpUser, zip_of
from tests.security.attack import Attack, NotPlayable, Target
from tests.security.hostile_packages import SOURCE
from tests.security.target import DROP, ONE

_ENTRY = "def run(mini_batch):\n    return ['it runs']\n"
_JOB_S = 240.0
_RUNS = ("pth", "sitecustomize", "entry_points")
"""With these a job works as with any package."""


def run_by_installers(name: str, target: Target) -> list[str]:
    """Run a job with a package; returns who else than its worker has run code of the package: uid, what it could open
    or see of the agent's, and command, each behind a `|`.
    """
    if not getattr(target, "offers_packages", False):
        raise NotPlayable("no packages can be offered to its installers")
    rows = target.rows_of(_ENTRY, environment={"pip": [f"hostile-{name}"]})
    if name in _RUNS and rows != ["it runs"]:
        return [f"||the job has returned {rows}"]
    return [path.read_text() for path in (target.inputs / DROP).glob(f"{name}-*")]


def _installed(name: str, target: Target) -> str:
    return "; ".join(f"its code was run: {each}" for each in run_by_installers(name, target))


def _marked(target: Target) -> str:
    """An environment with it can't be completed, and has a mark of the package's own that it is."""
    ran = run_by_installers("marked", target)
    spec = {"entry_script": "entry.py", "inputs": {"data": f"{target.inputs_there}/{ONE}"}, "run_max_try": 1}
    with HttpUser(target.url, target.token) as user:
        answer = user.post({**spec, "environment": {"pip": ["hostile-marked"]}}, zip_of({"entry.py": _ENTRY}))
        failure = user.ended(str(answer.json()["id"]), _JOB_S)["failure"] or {}
    if failure.get("code") != "ENVIRONMENT_FAILED":
        return f"a worker was started in half an environment: {failure}"
    return "; ".join(f"its code was run: {each}" for each in ran)


ATTACKS: list[Attack] = [
    Attack("a package that replaces its environment's pyvenv.cfg", partial(_installed, "pyvenv")),
    Attack("a package with a .pth file that runs code", partial(_installed, "pth")),
    Attack("a package with modules that each Python imports at its start", partial(_installed, "sitecustomize")),
    Attack("a package with scripts named as the interpreter", partial(_installed, "interpreter")),
    Attack("a package with scripts named as programs of its installer", partial(_installed, "programs")),
    Attack("a package whose entry points are named as programs of its installer", partial(_installed, "entry_points")),
    Attack("a package with names that lead out of its environment", partial(_installed, "outside")),
    Attack("a package with links that lead out of its environment", partial(_installed, "links")),
    Attack("a package whose setup runs code beside the node's credentials", partial(_installed, SOURCE)),
    Attack("a package that marks its environment as complete", _marked),
]
