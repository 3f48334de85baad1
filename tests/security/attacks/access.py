"""How a token could become known, or be evaded with the help of a browser."""

from __future__ import annotations

import httpx

from tests.security.attack import Attack, Target


def _foreign_host(target: Target) -> str:
    """A page whose name was pointed at this server, with the credentials of the user (DNS rebinding)."""
    with httpx.Client(base_url=target.url, timeout=20, trust_env=False) as client:
        for host in ("attacker.example", "attacker.example:8080", "127.0.0.1.attacker.example", ""):
            headers = {"Authorization": f"Bearer {target.token}", "Host": host}
            status = client.get("/v1/jobs", headers=headers).status_code
            if status != 421:
                return f"a request for {host!r} is answered with {status}"
    return ""


def _token_in_root(target: Target) -> str:
    """User code searches what it shares with the services."""
    script = f"""
import os
def run(mini_batch):
    rows = []
    for name in os.listdir({target.root!r}):
        path = os.path.join({target.root!r}, name)
        if os.path.isfile(path) and os.access(path, os.R_OK):
            rows.append(f"file {{name}}: {{open(path, 'rb').read(100)!r}}")
    return rows or ["nothing"]
"""
    rows = target.rows_of(script)
    return "; ".join(row for row in rows if target.token in row or row.startswith("file token"))


ATTACKS: list[Attack] = [
    Attack("a name of somebody else for this server", _foreign_host),
    Attack("the token in the folder that all share", _token_in_root),
]
