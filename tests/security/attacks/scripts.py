"""What an entry script can do beside its work: leave processes, kill others, fill logs, write into what is open."""

from __future__ import annotations

import re
import secrets
from functools import partial

from tests.acceptance.http_user import HttpUser, zip_of
from tests.security.attack import Attack, Target

_CHILDREN = 200
_FLOOD_BYTES = 200 << 20
_LOGS_BYTES = 160 << 20
"""Twice what the logs of one worker hold, and some of ours."""

_LEAVING = f"""
import os, subprocess, sys, time
MARK = "MARK_OF_IT"
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)", MARK]
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.environ.clear()
            os.execv(SLEEP[0], SLEEP)
        os._exit(0)
    os.wait()
def bomb():
    for number in range({_CHILDREN}):
        if os.fork() == 0:
            if number % 2:
                os.setsid()
            os.execv(SLEEP[0], SLEEP)
def run(mini_batch):
    HOW()
    return ["left"]
"""

_FIND = """
import glob, time
def alive():
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path) as file:
                if "MARK_OF_IT" in file.read():
                    yield path
        except OSError:
            pass
def run(mini_batch):
    end = time.monotonic() + 15
    while time.monotonic() < end and any(alive()):
        time.sleep(0.2)
    return [f"{len(list(alive()))} alive"]
"""

_WRITE_INTO_ALL = """
import os
def run(mini_batch):
    for fd in range(3, 200):
        try:
            os.write(fd, b"\\0\\0\\0\\1forged row\\n" * 50)
        except OSError:
            pass
    return ["true row"]
"""

_KILL_IF_APART = """
import os, signal
def run(mini_batch):
    with open(f"/proc/{os.getppid()}/status") as file:
        agent = next(line.split()[1] for line in file if line.startswith("Uid:"))
    if os.getuid() in (0, int(agent)):
        return ["its own user"]  # it could kill far more than its cluster: that it can is enough
    HOW
    return ["killed"]
"""
_PASSWORDS_OF_INSTALLERS = """
import os
def run(mini_batch):
    return [name for name, value in os.environ.items() if "canary" in value] or ["none"]
"""
_PASSWORDS_IN_TEXTS = """
import os, sys
def run(mini_batch):
    return [text for text in (*sys.argv, *os.environ.values()) if "canary-" in text] or ["none"]
"""
_JOB_S = 240.0
_FINE = "def run(mini_batch):\n    return ['fine']\n"


def _leave(how: str, target: Target) -> str:
    mark = secrets.token_hex(8)
    target.rows_of(_LEAVING.replace("MARK_OF_IT", mark).replace("HOW", how))
    rows = target.rows_of(_FIND.replace("MARK_OF_IT", mark))
    return "" if rows == ["0 alive"] else f"a later job on the node saw {rows}"


def _kill(what: str, target: Target) -> str:
    target.rows_of(f"import os, signal\ndef run(mini_batch):\n    {what}\n    return ['killed']\n")
    rows = target.rows_of(_FINE)
    return "" if rows == ["fine"] else f"the next job's rows: {rows}"


def _kill_from_apart(what: str, target: Target) -> str:
    rows = target.rows_of(_KILL_IF_APART.replace("HOW", what))
    if rows == ["its own user"]:
        return "the worker is the agent's user, or root"
    rows = target.rows_of(_FINE)
    return "" if rows == ["fine"] else f"the next job's rows: {rows}"


def _flood(target: Target) -> str:
    script = f"def run(mini_batch):\n    for _ in range({_FLOOD_BYTES >> 20}):\n        print('x' * (1 << 20))\n"
    with HttpUser(target.url, target.token) as user:
        before = {job["id"] for job in _jobs(user)}
        target.rows_of(script + "    return ['flooded']\n")
        for job in _jobs(user):
            if job["id"] not in before:
                logs = user.client.get(f"/v1/jobs/{job['id']}/logs").raise_for_status().json()["items"]
                size = sum(log["bytes"] for log in logs)
                if size > _LOGS_BYTES:
                    return f"{size:,} bytes of logs"
    return ""


def _jobs(user: HttpUser) -> list[dict[str, str]]:
    return list(user.client.get("/v1/jobs").raise_for_status().json()["items"])


def _search_passwords_of_installers(target: Target) -> str:
    rows = target.rows_of(_PASSWORDS_OF_INSTALLERS)
    return "" if rows == ["none"] else f"its environment has {rows}"


def _expand_passwords_of_installers(target: Target) -> str:
    """Name the variables in all texts of a job that something might expand, and look at what became of them."""
    name = "UV_INDEX_INNER_PASSWORD"
    forms = (
        f"${name}",
        f"${{{name}}}",
        f"$({name})",
        f"%({name})s",
        f"{{{name}}}",
        f"$(printenv {name})",
        f"`printenv {name}`",
    )
    variables = {f"X{number}": form for number, form in enumerate(forms)} | {"X": f"${{{{secrets.{name}}}}}"}
    arguments = " ".join(f"--x{number} '{form}'" for number, form in enumerate(forms))
    with_variables: dict[str, object] = {"environment_variables": variables, "program_arguments": arguments}
    rows = target.rows_of(_PASSWORDS_IN_TEXTS, **with_variables)
    if rows and rows != ["none"]:
        return f"it has {rows}"
    command = f"env; set; echo {' '.join(forms[:2])}; tr '\\0' '\\n' </proc/$$/environ; export -p"
    with HttpUser(target.url, target.token) as user:
        for fields in ({}, {"environment_variables": variables}):
            answer = user.post({"command": command, "run_max_try": 1, **fields}, zip_of({"x.txt": ""}))
            assert answer.status_code in (202, 422), answer.text
            if answer.status_code == 202:
                job = user.ended(str(answer.json()["id"]), _JOB_S)
                logs = user.client.get(f"/v1/jobs/{job['id']}/merged-logs?source=all&limit=1000")
                if "canary-" in logs.raise_for_status().text:
                    return f"a command has printed {re.findall(r'.*canary-.*', logs.text)[:2]}"
    return ""


def _write_into_all(target: Target) -> str:
    rows = target.rows_of(_WRITE_INTO_ALL)
    forged = [row for row in rows if "forged" in row]
    if forged:
        return f"the output has {forged[:2]}"
    return _kill("pass", target)


ATTACKS = [
    Attack("a daemon that outlives its job", partial(_leave, "daemon")),
    Attack(f"{_CHILDREN} children that outlive their job", partial(_leave, "bomb")),
    Attack("a kill of all in the worker's group", partial(_kill, "os.killpg(0, signal.SIGKILL)")),
    Attack(
        "a kill of whoever may be killed", partial(_kill_from_apart, "os.kill(-1, signal.SIGKILL)"), apart_only=True
    ),
    Attack("a kill of the agent", partial(_kill_from_apart, "os.kill(os.getppid(), signal.SIGKILL)"), apart_only=True),
    Attack("a log without an end", _flood),
    Attack("rows forged through all that is open", _write_into_all),
    Attack("the passwords of package indexes in a worker's environment", _search_passwords_of_installers),
    Attack("the passwords of package indexes in what becomes of a job's texts", _expand_passwords_of_installers),
]
