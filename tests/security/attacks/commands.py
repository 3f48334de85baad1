"""Inputs of a command that its shell, or a program in it, would run: whoever may name them need not be its author."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Any, Final

from tests.acceptance.http_user import HttpUser, zip_of
from tests.security.attack import Attack, Target
from tests.security.attacks.paths import placed
from tests.security.target import ONE

_JOB_S: Final = 240.0
_AS_WORDS: Final = (
    "cat ${{inputs.x}}; cat '${{inputs.x}}' \"${{inputs.x}}\"; ls \"$(dirname ${{inputs.x}})\" `ls ${{inputs.x}}`",
    "cat <<EOF\n${{inputs.x}}\nEOF", "bash -c 'ls ${{inputs.x}}'", "eval ls ${{inputs.x}}",
    "echo $((1${{inputs.x}}))",
)  # fmt: skip
"""Commands in which a shell reads the path of an input."""
_AS_PROGRAMS: Final = (
    "sh -c -- 'ls ${{inputs.x}}'", "\"bash\" -c 'ls ${{inputs.x}}'", "sh -ec \\\n 'ls ${{inputs.x}}'",
    "trap 'ls ${{inputs.x}}' EXIT", "[[ 1${{inputs.x}} -eq 1 ]]", "echo 'ls ${{inputs.x}}' | sh",
    "sh <<<'ls ${{inputs.x}}'", "awk 'BEGIN { system(\"ls ${{inputs.x}}\") }'",
    "awk 'BEGIN { system(\"ls '${{inputs.x}}'\") }'", "awk 'BEGIN { system(\"ls '\"${{inputs.x}}\"'\") }'",
)  # fmt: skip
"""Commands in which another program reads it."""
_ENDS: Final = (
    "$({run})",
    "`{run}`",
    ";{run};",
    "' ; {run} ; '",
    '" ; {run} ; "',
    "a[$({run})]",
    "\n{run}\n",
    "EOF\n{run}",
)
"""Names of files that run something wherever they are taken for code; no such name has a slash."""


def _run_as(commands: tuple[str, ...], target: Target) -> str:
    """Give a command the path of a file whose name is code."""
    with HttpUser(target.url, target.token) as user, placed(target) as folder:
        for end in _ENDS:
            mark = secrets.token_hex(8)
            name = f"f{end.format(run=f'printf m%s {mark}>&2')}"
            (folder / name).touch(mode=0o644)
            path = f"{target.inputs_there}/{folder.name}/{name}"
            for command in commands:
                if f"m{mark}" in _printed(user, command, {"x": {"type": "uri_file", "path": path}}):
                    return f"{command!r} has run what is in {name!r}"
    return ""


def _run_by_variable(target: Target) -> str:
    """Give a command a value that is code, as its variable, and an input whose name is code."""
    mark = secrets.token_hex(8)
    run = f"printf m%s {mark}>&2"
    with HttpUser(target.url, target.token) as user:
        values = {f"x{number}": {"value": end.format(run=run)} for number, end in enumerate(_ENDS)}
        texts = (f'printf \'<%s>\' "$AZURE_ML_INPUT_{name}"; cat "$AZURE_ML_INPUT_{name}" || true' for name in values)
        if f"m{mark}" in _printed(user, "; ".join(texts), values):
            return "a value was run"
        data = {"type": "uri_folder", "path": f"{target.inputs_there}/{ONE}"}
        for name in (f"x;{run};", f"x}}$({run}){{", f"x\n{run}\n", f"x[$({run})]", "x=1 BASH_ENV"):
            if f"m{mark}" in _printed(user, f"ls ${{{{inputs.{name}}}}}", {name: data}):
                return f"the name {name!r} was run"
    return ""


def _printed(user: HttpUser, command: str, inputs: dict[str, Any]) -> str:
    """What a command has printed; empty if it was refused."""
    answer = user.post({"command": command, "inputs": inputs, "run_max_try": 1}, zip_of({"x.txt": ""}))
    if answer.status_code != 202:
        assert answer.status_code == 422, answer.text
        return ""
    job = f"/v1/jobs/{answer.json()['id']}"
    user.ended(str(answer.json()["id"]), _JOB_S)
    return user.client.get(f"{job}/merged-logs?source=all&limit=1000").raise_for_status().text


ATTACKS: list[Attack] = [
    Attack("paths of a command's inputs that its shell would run", partial(_run_as, _AS_WORDS)),
    Attack("paths of a command's inputs that another program would run", partial(_run_as, _AS_PROGRAMS)),
    Attack("values of a command's inputs in their variables, and names of inputs", _run_by_variable),
]
