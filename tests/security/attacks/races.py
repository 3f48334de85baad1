"""Paths that are something else when they are used than when they were checked."""

from __future__ import annotations

import threading

from tests.acceptance.http_user import HttpUser
from tests.security.attack import Attack, Target
from tests.security.attacks.paths import placed, submit

_VICTIM = "def run(mini_batch):\n    return ['of another job']\n"
_TRIES = 15


def _code_swapped(target: Target) -> str:
    """Swap a folder of code for a link to another job's stored code while it is copied."""
    with HttpUser(target.url, target.token) as user, placed(target) as folder:
        _, victim = submit(user, target, _VICTIM)
        code = folder / "code"
        code.mkdir(mode=0o755)
        (code / "entry.py").write_text("def run(mini_batch):\n    return ['its own']\n")
        stolen = f"{target.root}/code/{victim['code']}" if victim.get("code") else f"{target.root}/code"
        is_over = threading.Event()

        def swap() -> None:
            aside = folder / "aside"
            while not is_over.is_set():
                code.rename(aside)
                code.symlink_to(stolen)
                code.unlink()
                aside.rename(code)

        thread = threading.Thread(target=swap)
        thread.start()
        try:
            for _ in range(_TRIES):
                spec = {
                    "entry_script": "entry.py", "code": f"{target.inputs_there}/{folder.name}/code",
                    "inputs": {"data": f"{target.inputs_there}/one"},
                }  # fmt: skip
                answer = user.client.post("/v1/jobs", json=spec)
                if answer.status_code != 202:
                    if answer.status_code != 422:
                        return f"{answer.status_code}: {answer.text[:200]}"
                    continue
                job = user.ended(str(answer.json()["id"]), 60.0)
                rows = user.client.get(f"/v1/jobs/{job['id']}/outputs/parallel_run_step.txt").text
                if "of another job" in rows:
                    return "the code of another job was copied"
        finally:
            is_over.set()
            thread.join()
    return ""


ATTACKS: list[Attack] = [Attack("a folder of code that becomes a link while it is copied", _code_swapped)]
