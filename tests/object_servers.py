"""Object stores on this machine, as real servers on ports of their own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from tests.redis_server import with_this_process

PROGRAMS = Path(__file__).parents[1] / ".venv-object-servers" / "bin"
"""Where `make test` installs them."""
_READY_S = 60
_MOST_ATTEMPTS = 5
BUCKET = "parallelrun-tests"
"""There once the server is ready."""
KEY, SECRET = "parallelrun-tests", "not-a-secret-but-long-enough"


def require_programs() -> None:
    """Skip the test if the servers aren't installed; in CI, that is a failure."""
    if not (PROGRAMS.parent / "ready").exists():
        reason = "the object stores aren't installed: `make test` does it"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


class ObjectServer:
    """A server that speaks S3. Use it in a `with` statement.

    Attributes:
        environment: what its clients need to find in theirs.
    """

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="pr-store-"))
        self._attempts = 0
        self._take_ports()
        self._process: subprocess.Popen[bytes] | None = None

    def _take_ports(self) -> None:
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "2",
        }

    def command(self) -> list[str]:
        """What starts it in the foreground."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        while not self._starts():
            self._stop()
            self._take_ports()  # somebody else was faster with one of the others
        return self

    def _starts(self) -> bool:
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*with_this_process(), *self.command()], cwd=self.home, stdout=log, stderr=log,
                env={**os.environ, "HOME": str(self.home)},
            )  # fmt: skip
        deadline = time.monotonic() + _READY_S
        while not self.is_ready():
            self._attempts += self._process.poll() is not None
            if self._attempts > _MOST_ATTEMPTS or time.monotonic() > deadline:
                raise RuntimeError(f"the store didn't start: {(self.home / 'log').read_text()[-2000:]}")
            if self._process.poll() is not None:
                return False
            time.sleep(0.05)  # a server gives no sign when it is ready
        return True

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __exit__(self, *_: object) -> None:
        self._stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def is_ready(self) -> bool:
        """Whether it takes a bucket."""
        try:
            self.client().create_bucket(Bucket=BUCKET)
        except Exception:  # botocore has a kind for each way in which a server isn't there
            return False
        return True

    def client(self) -> Any:
        """A client of botocore's, to see and change what is there without the code that is tested."""
        from botocore.config import Config
        from botocore.session import get_session

        return get_session().create_client(
            "s3", region_name="us-east-1", endpoint_url=self.url, aws_access_key_id=KEY, aws_secret_access_key=SECRET,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}),
        )  # fmt: skip


class Moto(ObjectServer):
    """Quick to start, and exact about conditions; it keeps everything in memory."""

    def command(self) -> list[str]:
        return [str(PROGRAMS / "python"), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]

    def is_ready(self) -> bool:
        try:
            httpx.get(f"{self.url}/moto-api/data.json", timeout=5)
        except httpx.TransportError:
            return False
        return super().is_ready()


class SeaweedFS(ObjectServer):
    """A distributed store, with files behind it."""

    def command(self) -> list[str]:
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (self.home / "s3.json").write_text(json.dumps({"identities": [identity]}))
        (self.home / "data").mkdir(exist_ok=True)
        ports = {"master": _free_port(), "volume": _free_port(), "filer": _free_port()}
        return [
            str(PROGRAMS / "weed"), "server", f"-dir={self.home / 'data'}", "-ip=127.0.0.1",
            *(f"-{name}.port={port}" for name, port in ports.items()),
            *(f"-{name}.port.grpc={_free_port()}" for name in ports),
            "-master.volumeSizeLimitMB=1024", "-volume.max=50",
            "-s3", f"-s3.port={self.port}", f"-s3.port.grpc={_free_port()}", f"-s3.config={self.home / 's3.json'}",
        ]  # fmt: skip


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
