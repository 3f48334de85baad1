"""Dockerfiles of jobs that have the Engine fetch, from the network of its machine, or show what it has there."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from functools import partial
from typing import Final

from tests.acceptance.http_user import HttpUser, zip_of
from tests.security.attack import Attack, Target
from tests.security.target import ONE

FETCHING: Final = (
    "FROM x\nADD https://h/x /x",
    "FROM x\nadd --chown=1:1 http://169.254.169.254/x /x",
    "FROM x\nONBUILD ADD https://h/x /x",
    "FROM x\nAD\\\nD https://h/x /x",
    "FROM x\nADD \\\n# why\n\n https://h/x /x",
    "# escape=`\nFROM x\nADD `\n https://h/x /x",
    'FROM x\nADD ["https:\\u002f\\u002fh/x", "/x"]',
    'FROM x\nADD "https:"//h/x /x',
    "FROM x\nARG U\nADD ${U} /x",
    "FROM x\nADD git@h:x/y.git /x",
    "\ufeffADD https://h/x /x",
    "FROM x\r\nADD https://h/x /x\r\n",
    "FROM x\nRUN <<'E\\'\nE\\\nAD\\\nD https://h/x /x",
    "FROM x\nRUN <<'#'\nx \\\n#\nAD\\\nD https://h/x /x",
    "FROM x\nRUN <<''\nx \\\n\nAD\\\nD ht\\\ntps:\\\n//h/x /x",
    "FROM x\nRUN <<'#'\nx \\\n#\nONBUILD\\\n  AD\\\nD git\\\n@h:x /x",
)
"""With `ADD`."""
OF_THE_MACHINE: Final = (
    "FROM 169.254.169.254/latest/x",
    "from metadata.google.internal/x AS y",
    "FROM 0xa9fea9fe:80/x",
    "FROM [::ffff:169.254.169.254]:80/x",
    "FROM x\nCOPY --from=169.254.169.254/x /x /x",
    "FROM x\nCOPY --chown=1 --fr\"o\"m='169.254.169.254'/x /x /x",
    "FROM x\nONBUILD COPY --from=169.254.169.254/x /x /x",
    "ARG H=169.254.169.254\nFROM ${H}/x",
    "ARG H\nFROM ${H:-169.254.169.254}/x",
    "ARG H=$HTTP_PROXY\nFROM $H/x",
    "FROM \\\n 169.254.\\\n169.254/x",
    "FROM x\nRUN <<E\nx \\\nE\nFROM 169.254.169.254/x",
    "FROM parallelrun-built:00ff",
    "FROM x\nCOPY --from=docker.io/library/parallelrun-built:00ff / /x",
    "FROM 00ff",
    "FROM sha256:00ff",
    "FROM x\nCOPY --from=00ff / /x",
)
"""As images: at addresses of clouds' own services, of other jobs, and by their ids."""
WITH_MOUNTS: Final = (
    "FROM x\nRUN --mount=type=bind,from=169.254.169.254/x,target=/x cat /x",
    "FROM x\nRUN --mount=type=secret,id=x cat /run/secrets/x",
    "FROM x\nRUN --mount=type=ssh ssh-add -l",
    "FROM x\nRUN --mount=type=cache,target=/x,id=others ls /x",
    "FROM x\nRUN \\\n --network=host curl http://127.0.0.1",
    "FROM x\nONBUILD RUN --security=insecure mount",
)


def _accepted(texts: Sequence[str], target: Target) -> str:
    """Submit a job with an image of each; returns those that were taken."""
    taken = []
    compute = f"pool-{secrets.token_hex(4)}"
    with HttpUser(target.url, target.token) as user:
        client = user.client
        client.put(f"/v1/computes/{compute}", json={"type": "docker"}).raise_for_status()
        try:
            for text in ("FROM x\nCOPY entry.py /\n", *texts):
                name = f"docker-{secrets.token_hex(8)}"
                files = zip_of({"Dockerfile": text, "entry.py": "def run(mini_batch):\n    return mini_batch\n"})
                sent = client.put(
                    f"/v1/assets/code/{name}/versions/1",
                    files={"spec": (None, json.dumps({}), "application/json"), "content": files},
                )
                code = sent.raise_for_status().json()["content"]["path"]
                spec = {
                    "entry_script": "entry.py", "code": code, "compute": compute,
                    "inputs": {"data": f"{target.inputs_there}/{ONE}"}, "environment": {"build": {"path": code}},
                }  # fmt: skip
                answer = client.post("/v1/jobs", json=spec)
                if answer.status_code == 202:
                    client.post(f"/v1/jobs/{answer.json()['id']}:cancel")
                    taken.append(text)
                elif answer.status_code != 422 or "/environment/build" not in answer.text:
                    taken.append(f"{text}: {answer.status_code} {answer.text}")
        finally:
            client.delete(f"/v1/computes/{compute}")
    assert taken[:1] == ["FROM x\nCOPY entry.py /\n"], taken
    return f"taken: {', '.join(map(repr, taken[1:11]))}" if taken[1:] else ""


ATTACKS: list[Attack] = [
    Attack("a Dockerfile that has the Engine fetch a URL", partial(_accepted, FETCHING)),
    Attack("a Dockerfile of what only the Engine's machine has", partial(_accepted, OF_THE_MACHINE)),
    Attack("a Dockerfile whose steps mount what isn't the build's", partial(_accepted, WITH_MOUNTS)),
]
