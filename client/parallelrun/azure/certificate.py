"""A certificate for this machine's own address, and the authority that has signed it, made on the spot.

The key of the authority is gone once the certificate is signed, so nothing else can ever be signed with it: whoever
trusts it trusts this one certificate.
"""

from __future__ import annotations

import math
import shutil
import ssl
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from parallelrun.errors import ParallelRunError
from parallelrun_core.durable_files import replace_file

_DAYS: Final = 90
_RENEWED_BEFORE_S: Final = 7 * 24 * 3600
_TIMEOUT_S: Final = 30
_NAMES: Final = "IP:127.0.0.1,DNS:localhost"
_SYSTEM_BUNDLES: Final = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


class Certificate:
    """The files of a certificate for this machine's own address, in a folder that only this user can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.chain: Final = folder / "server.pem"
        """The server's certificate and key, in PEM."""
        self.bundle: Final = folder / "ca-bundle.pem"
        """The authority, and all authorities that this machine trusts anyway: clients read a single file."""

    def make(self) -> None:
        """Make the files, unless they are there, and valid for another week.

        Raises:
            ParallelRunError: there is no `openssl`, or it fails.
        """
        if self.bundle.exists() and self.chain.exists() and _expires_at(self.chain) > time.time() + _RENEWED_BEFORE_S:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            folder = Path(name)
            _sign(folder)
            chain = (folder / "server.crt").read_bytes() + (folder / "server.key").read_bytes()
            replace_file(self.chain, chain, mode=0o600)
            replace_file(self.bundle, _system_bundle() + (folder / "ca.crt").read_bytes(), mode=0o644)


def _sign(folder: Path) -> None:
    """Write an authority (`ca.crt`), and the certificate and key that it has signed (`server.crt`, `server.key`)."""
    (folder / "extensions").write_text(
        f"basicConstraints=critical,CA:FALSE\nsubjectAltName={_NAMES}\nkeyUsage=critical,digitalSignature\n"
        "extendedKeyUsage=serverAuth\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
    )
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    days = ("-days", str(_DAYS))
    _openssl(
        folder, "req", "-x509", *key, *days, "-subj", "/CN=ParallelRun on this machine", "-keyout", "ca.key",
        "-out", "ca.crt", "-addext", "basicConstraints=critical,CA:TRUE,pathlen:0",
        "-addext", "keyUsage=critical,keyCertSign",
        "-addext", "nameConstraints=critical,permitted;IP:127.0.0.1/255.255.255.255,permitted;DNS:localhost",
    )  # fmt: skip
    _openssl(folder, "req", "-new", *key, "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
    _openssl(
        folder, "x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", *days,
        "-extfile", "extensions", "-out", "server.crt",
    )  # fmt: skip
    (folder / "ca.key").unlink()


def _openssl(folder: Path, *arguments: str) -> str:
    """Run openssl in this folder; returns what it prints.

    Raises:
        ParallelRunError: it isn't there, or it failed.
    """
    program = shutil.which("openssl")
    if program is None:
        raise ParallelRunError("A certificate can't be made: there is no `openssl` on the path. Install it.")
    process = subprocess.run(
        [program, *arguments], cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, umask=0o077
    )
    if process.returncode:
        raise ParallelRunError(f"A certificate can't be made: {process.stderr.strip()[-500:]}")
    return process.stdout


def _system_bundle() -> bytes:
    """The authorities that this machine trusts, in PEM; empty if no file has them."""
    for path in filter(None, (ssl.get_default_verify_paths().cafile, *_SYSTEM_BUNDLES)):
        if Path(path).is_file():
            return Path(path).read_bytes().rstrip() + b"\n"
    return b""


def _expires_at(chain: Path) -> float:
    """The end of a certificate's validity in seconds since the epoch; 0: it can't be read. It never ends where nothing
    could make another."""
    if shutil.which("openssl") is None:
        return math.inf
    try:
        end = _openssl(chain.parent, "x509", "-noout", "-enddate", "-in", chain.name)
        return float(ssl.cert_time_to_seconds(end.strip().removeprefix("notAfter=")))
    except (ParallelRunError, ValueError):
        return 0.0
