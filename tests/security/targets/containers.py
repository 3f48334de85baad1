"""The containers of docker-compose.yml, where there is a Docker Engine."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.acceptance import engine
from tests.acceptance.compose import Compose
from tests.security.target import HttpTarget, Missing, fill


@contextmanager
def reach() -> Iterator[HttpTarget]:
    """Start them under a project of their own, with one agent, and remove them at the end; the images stay."""
    try:
        client = engine.reach()
    except engine.EngineMissing as missing:
        if engine.is_required():
            raise
        raise Missing(str(missing)) from missing
    home = Path(tempfile.mkdtemp(prefix="pr-attack-", dir="/tmp"))
    with closing(client):
        project = Compose(client, home / "inputs")
        try:
            fill(home / "inputs")
            home.chmod(0o755)
            project.start(agents=1)
            with project.user() as user:
                project.wait_for_nodes(user, 1)
                token = user.client.headers["Authorization"].partition(" ")[2]
                nodes = user.client.get("/v1/nodes").raise_for_status().json()["items"]
            yield HttpTarget(
                name="containers",
                url=project.url(),
                server_url=project.server_url(),
                token=token,
                is_apart=all(node["workers_apart"] for node in nodes),
                root="/data",
                inputs=home / "inputs",
                inputs_there="/inputs",
            )
        finally:
            project.remove()
            shutil.rmtree(home, ignore_errors=True)
