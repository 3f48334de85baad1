"""Servers that speak S3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import httpx

from tests.object_servers.server import BUCKET, PROGRAMS, ObjectServer, free_port

KEY, SECRET = "parallelrun-tests", "not-a-secret-but-long-enough"


class S3Server(ObjectServer):
    """One of them."""

    def environment_at(self, url: str) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "2",
        }

    def make_bucket(self) -> None:
        self.client().create_bucket(Bucket=BUCKET)

    def outside(self) -> S3Outside:
        return S3Outside(self.client())

    def client(self) -> Any:
        """A client of botocore's."""
        from botocore.config import Config
        from botocore.session import get_session

        return get_session().create_client(
            "s3", region_name="us-east-1", endpoint_url=self.url, aws_access_key_id=KEY, aws_secret_access_key=SECRET,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}),
        )  # fmt: skip


class S3Outside:
    """See `Outside`."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def put(self, key: str, content: bytes) -> str:
        return str(self.client.put_object(Bucket=BUCKET, Key=key, Body=content)["ETag"])

    def content(self, key: str) -> bytes:
        return bytes(self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read())

    def keys(self, prefix: str) -> list[str]:
        listed = self.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", ())
        return [each["Key"] for each in listed]

    def close(self) -> None:
        self.client.close()


class Moto(S3Server):
    """Quick to start, and exact about conditions; it keeps everything in memory."""

    def command(self) -> list[str]:
        return [str(PROGRAMS / "bin" / "python"), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]

    def make_bucket(self) -> None:
        httpx.get(f"{self.url}/moto-api/data.json", timeout=5)
        super().make_bucket()


class SeaweedFS(S3Server):
    """A distributed store, with files behind it."""

    wrong: ClassVar[dict[str, str]] = {"AWS_SECRET_ACCESS_KEY": "wrong"}

    def command(self) -> list[str]:
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (self.home / "s3.json").write_text(json.dumps({"identities": [identity]}))
        (self.home / "data").mkdir(exist_ok=True)
        ports = {"master": free_port(), "volume": free_port(), "filer": free_port()}
        self.filer_url = f"http://127.0.0.1:{ports['filer']}"
        return [
            str(PROGRAMS / "bin" / "weed"), "server", f"-dir={self.home / 'data'}", "-ip=127.0.0.1",
            *(f"-{name}.port={port}" for name, port in ports.items()),
            *(f"-{name}.port.grpc={free_port()}" for name in ports),
            "-s3.port.iceberg=0", "-s3.port.lance=0",  # these have fixed ports otherwise
            "-master.volumeSizeLimitMB=1024", "-volume.max=50",
            "-s3", "-master.telemetry=false",
            f"-s3.port={self.port}", f"-s3.port.grpc={free_port()}", f"-s3.config={self.home / 's3.json'}",
        ]  # fmt: skip

    def put_as_it_is(self, path: Path, key: str) -> None:
        """Put a file where S3 finds it, in a way that the server doesn't compress it.

        By S3, it compresses whatever looks like text, and unpacks all of it for each range that somebody reads.
        """
        with path.open("rb") as content:
            length = str(path.stat().st_size)
            answer = httpx.put(
                f"{self.filer_url}/buckets/{BUCKET}/{key}", params={"maxMB": "8"}, content=content, timeout=300,
                headers={"Content-Type": "application/zstd", "Content-Length": length},
            )  # fmt: skip
        answer.raise_for_status()
