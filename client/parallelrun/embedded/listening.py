"""The listener for nodes on other machines: the Redis server of an embedded cluster, by TLS, with passwords that stay.

The certificate is the cluster's own, made once for a host: nodes trust this one file, which is on the volume that they
share with the cluster.
"""

from __future__ import annotations

import errno
import ipaddress
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote

from parallelrun.errors import ClusterFailed
from parallelrun_core.durable_files import replace_file

PORT: Final = 6380
_DAYS: Final = 3650
_MAKE_S: Final = 30.0
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_FORM: Final = "write the name or the address of this machine as nodes know it, such as login1:6380 or [fd00::1]:6380"


@dataclass(frozen=True, kw_only=True)
class Listener:
    """An address on which the server listens, and its certificate."""

    host: str
    port: int
    folder: Path
    """The folder of certificate and key; accessible only to this user."""

    @classmethod
    def parse(cls, text: str, folder: Path) -> Self:
        """Parse HOST, HOST:PORT or [ADDRESS]:PORT.

        Raises:
            ClusterFailed: it is none of these, or an address that no other machine can reach this one by.
        """
        match = re.fullmatch(r"(\[(?P<address>[^\]]*)\]|(?P<host>[^:\[\]]*))(:(?P<port>\d{1,5}))?", text)
        host = (match["address"] or match["host"]) if match else ""
        port = int(match["port"] or PORT) if match else 0
        if not (_is_address(host) or _NAME.fullmatch(host)) or not 0 < port < 65536:
            raise ClusterFailed(f"--listen {text}: {_FORM}.")
        if _is_address(host) and ipaddress.ip_address(host).is_unspecified:
            raise ClusterFailed(f"--listen {text}: nodes can't reach a machine by this address; {_FORM}.")
        return cls(host=host, port=port, folder=folder)

    @property
    def certificate(self) -> Path:
        return self.folder / f"{self.host}.crt"

    @property
    def key(self) -> Path:
        return self.folder / f"{self.host}.key"

    @property
    def url(self) -> str:
        """The URL for nodes, without a password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"rediss://{host}:{self.port}/0?ssl_ca_certs={quote(str(self.certificate))}"

    def settings(self) -> dict[str, str]:
        """Return what the server is started with."""
        return {
            "bind": self.host,
            "tls-port": str(self.port),
            "tls-cert-file": str(self.certificate),
            "tls-key-file": str(self.key),
            "tls-ca-cert-file": str(self.certificate),
            "tls-auth-clients": "no",  # they have passwords
        }

    def check(self) -> None:
        """Try to listen there.

        Raises:
            ClusterFailed: nobody knows the name, it is another machine's, or the port is taken.
        """
        trouble = ""
        try:
            for family, kind, _, _, address in socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM):
                with socket.socket(family, kind) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    try:
                        probe.bind(address)
                        return
                    except OSError as error:
                        trouble = _why_not(error, str(address[0]), self.port)
        except socket.gaierror:
            trouble = "no address is known for this name"
        raise ClusterFailed(f"--listen {self.host}: {trouble}; {_FORM}.")

    def prepare(self) -> None:
        """Make the certificate, unless it is there.

        Raises:
            ClusterFailed: that is not possible.
        """
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if self.certificate.exists() and self.key.exists():
            return
        openssl = shutil.which("openssl")
        if openssl is None:
            raise ClusterFailed("--listen needs the command openssl, which makes the certificate: install it.")
        name = f"IP:{self.host}" if _is_address(self.host) else f"DNS:{self.host}"
        completed = subprocess.run(
            [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-days", str(_DAYS), "-subj", "/CN=parallelrun", "-addext", f"subjectAltName={name}", "-keyout", "-"],
            capture_output=True,
            check=False,
            timeout=_MAKE_S,
        )  # fmt: skip
        parts = re.fullmatch(rb"(?s)(-----BEGIN PRIVATE KEY-----.*?KEY-----\n)(-----BEGIN.*-----\n)", completed.stdout)
        if completed.returncode != 0 or parts is None:
            raise ClusterFailed(f"openssl makes no certificate: {completed.stderr.decode(errors='replace')[-500:]}")
        replace_file(self.key, parts[1], mode=0o600)
        replace_file(self.certificate, parts[2], mode=0o644)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _why_not(error: OSError, address: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {address} is taken"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{address} is no address of this machine"
    return f"{address}, port {port}: {error.strerror}"
