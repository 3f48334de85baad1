"""What a job's code does to the services on its node, to other jobs, and to what the services keep of its own."""

from __future__ import annotations

import os
import secrets
import textwrap
from contextlib import suppress

from tests.security.attack import Attack, Target

_TRIED = """
import contextlib, ctypes, os, shutil, signal, subprocess, sys

through = []

@contextlib.contextmanager
def tried(what):
    try:
        yield
    except (OSError, KeyError, ValueError, IndexError):
        return
    through.append(what)

def services():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = open(f"/proc/{pid}/cmdline").read().split("\\0")
            if any(word.endswith((".main", ".background_process")) or "/bin/parallelrun-" in word for word in words):
                yield int(pid)
"""
"""What is before each script: it notes what didn't fail, and returns that as its rows."""


def _script(*lines: str) -> str:
    body = textwrap.indent("\n".join(map(textwrap.dedent, lines)), "    ")
    return f"{_TRIED}\ndef run(mini_batch):\n{body}\n    return through or ['held']\n"


def _through(target: Target, script: str) -> str:
    """What a script of the above got through to; that it didn't run at all is no answer."""
    rows = target.rows_of(script)
    if rows == ["held"]:
        return ""
    return "; ".join(rows) or "the job has returned nothing"


_MEMORY = _script(
    """
    for pid in services():
        with tried(f"environment of process {pid}"):
            open(f"/proc/{pid}/environ", "rb").read(1)
        with tried(f"memory of process {pid}"):
            open(f"/proc/{pid}/mem", "r+b").close()
        with tried(f"open files of process {pid}"):
            os.listdir(f"/proc/{pid}/fd")
        with tried(f"tracing of process {pid}"):
            if ctypes.CDLL(None).ptrace(0x4206, pid, 0, 0) != 0:
                raise OSError
    """
)

_SIGNALS = _script(
    """
    for pid in services():
        with tried(f"signal to process {pid}"):
            os.kill(pid, 0)
    """
)

_OWN_BOOKS = """
own = os.path.join({root!r}, "jobs", os.environ["AZUREML_RUN_ID"])
for name in ("job.json", "decisions.1", "manifest.1", "inputs.json"):
    with tried(f"{{name}} opened for writing"):
        open(f"{{own}}/{{name}}", "ab").close()
    with tried(f"{{name}} removed"):
        os.unlink(f"{{own}}/{{name}}")
for name in ("decisions.1", "job.json"):
    with tried(f"{{name}} read"):
        open(f"{{own}}/{{name}}", "rb").close()
for name in ("decisions.999", "result.json", "reopened.1.json"):
    with tried(f"{{name}} created"):
        open(f"{{own}}/{{name}}", "xb").close()
for name in ("parts", "journals"):
    with tried(f"{{name}} listed"):
        os.listdir(f"{{own}}/{{name}}")
    with tried(f"{{name}} replaced"):
        os.rename(f"{{own}}/{{name}}", f"{{own}}/{{name}}-2")
with tried("all jobs listed"):
    os.listdir(os.path.dirname(own))
with tried("the shared folder listed"):
    os.listdir({root!r})
with tried("the folder opened to all"):
    os.chmod(own, 0o777)
for fd in os.listdir("/proc/self/fd"):
    with tried("its part file opened again"):
        if "/parts/" not in os.readlink(f"/proc/self/fd/{{fd}}"):
            raise OSError
        os.close(os.open(f"/proc/self/fd/{{fd}}", os.O_RDWR))
"""

_VICTIM = """
import os
def run(mini_batch):
    here = os.environ["AZUREML_BI_OUTPUT_PATH"]
    with open(os.path.join(here, "secret.txt"), "w") as file:
        file.write("of another job")
    return [os.environ["AZUREML_RUN_ID"]]
"""

_OTHERS_FOLDER = """
victim = os.path.join({root!r}, "jobs", {job!r})
with tried("another job's folder listed"):
    os.listdir(victim)
for name in ("job.json", "result.json", "decisions.1", "outputs/secret.txt", "logs/job_result.txt"):
    with tried(f"{{name}} of another job read"):
        open(f"{{victim}}/{{name}}", "rb").close()
    with tried(f"{{name}} of another job opened for writing"):
        open(f"{{victim}}/{{name}}", "ab").close()
with tried("a file put into another job's outputs"):
    open(f"{{victim}}/outputs/planted", "xb").close()
"""

_CODE = _script(
    """
    here = os.path.dirname(os.path.abspath(__file__))
    with tried("its own stored code opened for writing"):
        open(__file__, "ab").close()
    with tried("its own stored code opened to all"):
        os.chmod(__file__, 0o666)
    with tried("a module put beside it"):
        open(os.path.join(here, "json.py"), "xb").close()
    with tried("a compiled module put beside it"):
        os.makedirs(os.path.join(here, "__pycache__", "deeper"))
    with tried("the stored code replaced"):
        os.rename(here, here + "-2")
    with tried("the list of its files replaced"):
        open(here + ".files", "ab").close()
    with tried("all stored code listed"):
        os.listdir(os.path.dirname(here))
    """
)

_POISON = """
import os
def run(mini_batch):
    try:
        os.chmod(__file__, 0o644)
        with open(__file__, "a") as file:
            file.write("\\ndef run(mini_batch):\\n    return ['poisoned']\\n")
    except OSError:
        pass
    return ["as submitted"]
"""

_SETUID = """
import os, shutil, stat
def run(mini_batch):
    target = {path!r}
    shutil.copy(shutil.which("id"), target)
    os.chmod(target, 0o6755)
    return [str(os.getuid())]
"""
_SETUID_RUN = """
import subprocess
with tried("run as the user of another job"):
    said = subprocess.run([{path!r}, "-u"], capture_output=True, text=True, timeout=20).stdout.strip()
    if said != {uid!r}:
        raise OSError
"""


def _others_folder(target: Target) -> str:
    (job,) = target.rows_of(_VICTIM) or [""]
    if not job:
        return "the other job has returned nothing"
    return _through(target, _script(_OTHERS_FOLDER.format(root=target.root, job=job)))


def _own_books(target: Target) -> str:
    return _through(target, _script(_OWN_BOOKS.format(root=target.root)))


def _poisoned_code(target: Target) -> str:
    first, second = target.rows_of(_POISON), target.rows_of(_POISON)
    return "" if first == second == ["as submitted"] else f"the same code again returned {second}, after {first}"


def _setuid_file(target: Target) -> str:
    path = f"/tmp/parallelrun-attack-{secrets.token_hex(8)}"
    try:
        (uid,) = target.rows_of(_SETUID.format(path=path)) or [""]
        script = _script(_SETUID_RUN.format(path=path, uid=uid))
        return _through(target, script) if uid else "the first job has returned nothing"
    finally:
        with suppress(OSError):  # in a container it is out of reach, and goes with it
            os.unlink(path)


ATTACKS: list[Attack] = [
    Attack("user code reads the memory or environment of a service", lambda target: _through(target, _MEMORY)),
    Attack("user code signals a service", lambda target: _through(target, _SIGNALS), apart_only=True),
    Attack("user code alters what the services keep of its job", _own_books, apart_only=True),
    Attack("user code reads or writes another job's folder", _others_folder, apart_only=True),
    Attack("user code alters stored code", lambda target: _through(target, _CODE), apart_only=True),
    Attack("the same code again runs what a job has put into the store", _poisoned_code),
    Attack("a job leaves a setuid file for another one", _setuid_file, apart_only=True),
]
