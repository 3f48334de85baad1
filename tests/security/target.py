"""What all targets have in common: an API, a token, and an input."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.http_user import HttpUser, zip_of
from tests.security.hostile_packages import offer
from tests.security.local_store import LocalStore

_JOB_S = 240.0
INSTALLERS_SECRETS = {
    "UV_PUBLISH_TOKEN": "canary-token",
    "UV_INDEX": "inner=file:///nowhere/simple",
    "PIP_EXTRA_INDEX_URL": "https://canary-user@localhost/simple",
    "UV_INDEX_INNER_PASSWORD": "canary-password",
}
"""What an operator has given to the agents for their installers, where the target is ours to start."""
SECRET_OF_STORE = "victim"
"""The name of the secret for the bucket that jobs may read, in the folder of secrets of all services."""
KEY_IN_STORE = "CANARYOFAKEY00000001"
DROP = "drop"
"""The folder below `inputs` that everybody can write to."""
PACKAGES = "packages"
"""The folder below `inputs` with packages that nodes are to install."""
ONE = "one"
"""The folder below `inputs` with one small file."""


class Missing(Exception):
    """Such a target can't be had here; the text says why."""


@dataclass(frozen=True)
class HttpTarget:
    """A cluster, as its submitters know it; see `attack.Target`."""

    name: str
    url: str
    token: str
    is_apart: bool
    root: str
    inputs: Path
    inputs_there: str
    server_url: str = ""
    """Where the API's own process listens, where that is not `url`."""
    store: LocalStore | None = None
    offers_packages: bool = False
    """Its nodes install packages of the folder `PACKAGES`."""
    shows_only_own: bool = False
    """People see only their own jobs there."""

    def rows_of(self, script: str, **settings: object) -> list[str]:
        """See `attack.Target`."""
        spec = {
            "entry_script": "entry.py", "inputs": {"data": f"{self.inputs_there}/{ONE}"}, "run_max_try": 1, **settings
        }  # fmt: skip
        with HttpUser(self.url, self.token) as user:
            answer = user.post(spec, zip_of({"entry.py": script}))
            if answer.status_code != 202:
                return []
            job = user.ended(str(answer.json()["id"]), _JOB_S)
            if job["output"] is None:
                return []
            rows = user.client.get(f"/v1/jobs/{job['id']}/outputs/{Path(job['output']['path']).name}")
            return rows.text.splitlines() if rows.status_code == 200 else []


def give_secret(folder: Path, uid: int) -> None:
    """Create a folder of secrets with that of the store, for the services' user."""
    file = folder / "datastores" / SECRET_OF_STORE
    file.parent.mkdir(parents=True)
    file.write_text(f"access_key_id: {KEY_IN_STORE}\nsecret_access_key: anything\n")
    folder.chmod(0o700)
    for path in (folder, file.parent, file):
        os.chown(path, uid, uid)


def settings_of_installers(inputs: Path) -> dict[str, str]:
    """The variables of agents that install what is in a folder of inputs, and nothing from elsewhere."""
    return {
        **INSTALLERS_SECRETS, "UV_FIND_LINKS": str(inputs / PACKAGES), "UV_OFFLINE": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }  # fmt: skip


def fill(inputs: Path, secrets: tuple[str, ...] = ()) -> None:
    """Create a folder of inputs, readable to everybody.

    Args:
        secrets: files of the services that hostile packages look for.
    """
    offer(inputs / PACKAGES, inputs / DROP, secrets)
    (inputs / DROP).mkdir()
    (inputs / DROP).chmod(0o777)
    (inputs / ONE).mkdir(parents=True)
    (inputs / ONE / "file.txt").write_text("one small file\n")
    for path, mode in ((inputs, 0o755), (inputs / ONE, 0o755), (inputs / ONE / "file.txt", 0o644)):
        path.chmod(mode)
