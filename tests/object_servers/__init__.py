"""Object stores on this machine, as real servers on ports of their own.

server.py   what they have in common
s3.py       moto and SeaweedFS, which speak S3
azure.py    Azurite, which speaks Azure's protocol
gcs.py      starts gcs_stub.py, which speaks as much of Google's protocol as its clients use
"""

from __future__ import annotations

from tests.object_servers.azure import Azurite
from tests.object_servers.gcs import GoogleStub
from tests.object_servers.s3 import KEY, SECRET, Moto, SeaweedFS
from tests.object_servers.server import BUCKET, ObjectServer, Outside, require_programs

__all__ = [
    "BUCKET", "KEY", "SECRET", "Azurite", "GoogleStub", "Moto", "ObjectServer", "Outside", "SeaweedFS",
    "require_programs",
]  # fmt: skip
