"""A certificate for this machine's own address, and the authority that has signed it, made on the spot.

The key of the authority is gone once the certificate is signed, so nothing else can ever be signed with it: whoever
trusts it trusts this one certificate.
"""

from __future__ import annotations

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
_PATIENCE_S: Final = 30
_NAMES: Final = "IP:127.0.0.1,DNS:localhost"
_SYSTEM: Final = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


class Certificate:
    """The files of a certificate, in a folder that only this user can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.chain: Final = folder / "server.pem"
        """Certificate and key of the server."""
        self.bundle: Final = folder / "ca-bundle.pem"
        """The authority, with all that this machine trusts anyway: clients are told of one file only."""

    def make(self) -> None:
        """Make them, unless they are there and will be valid for a while.

        Raises:
            ParallelRunError: there is no `openssl`, or it fails.
        """
        if self._is_good():
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            folder = Path(name)
            authority = _signed(folder)
            chain = (folder / "server.crt").read_bytes() + (folder / "server.key").read_bytes()
            replace_file(self.chain, chain, mode=0o600)
            replace_file(self.bundle, _trusted() + authority, mode=0o644)

    def _is_good(self) -> bool:
        return self.bundle.exists() and self.chain.exists() and _ends(self.chain) > time.time() + _RENEWED_BEFORE_S


def _signed(folder: Path) -> bytes:
    """Make the authority, and a certificate that it has signed; returns the authority without its key."""
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
    return (folder / "ca.crt").read_bytes()


def _openssl(folder: Path, *arguments: str) -> None:
    program = shutil.which("openssl")
    if program is None:
        raise ParallelRunError("A certificate can't be made: there is no `openssl` on the path. Install it.")
    done = subprocess.run(
        [program, *arguments], cwd=folder, capture_output=True, text=True, timeout=_PATIENCE_S, check=False, umask=0o077
    )
    if done.returncode:
        raise ParallelRunError(f"A certificate can't be made: {done.stderr.strip()[-500:]}")


def _trusted() -> bytes:
    """The authorities that this machine trusts."""
    places = [ssl.get_default_verify_paths().cafile, *_SYSTEM]
    for place in filter(None, places):
        if Path(place).is_file():
            return Path(place).read_bytes().rstrip() + b"\n"
    return b""


def _ends(chain: Path) -> float:
    """Return when a certificate ends, in seconds since the epoch."""
    try:
        decoded = ssl._ssl._test_decode_cert(str(chain))  # type: ignore[attr-defined]
        return float(ssl.cert_time_to_seconds(decoded["notAfter"]))
    except (ssl.SSLError, KeyError, ValueError):
        return 0.0
