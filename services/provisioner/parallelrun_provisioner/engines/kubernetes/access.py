"""Access to the API of Kubernetes: its address and our identity there, by the mounted service
account or a kubeconfig.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from parallelrun_provisioner.engines.interface import EngineError

MOUNTED: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, kw_only=True)
class ApiAccess:
    """The address of a cluster's API, and the credentials for it."""

    url: str
    namespace: str
    tls: ssl.SSLContext | None
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    """Has the token now: that of a service account is replaced every hour."""

    def authorization(self) -> dict[str, str]:
        """The header of each call; empty: a certificate says who we are.

        Raises:
            OSError: the token can't be read.
        """
        token = self.token_file.read_text().strip() if self.token_file else self.token
        return {"Authorization": f"Bearer {token}"} if token else {}


def mounted(folder: Path = MOUNTED) -> ApiAccess:
    """By the service account of the Pod in which this process runs.

    Raises:
        EngineError: it runs in none, or that has no token.
    """
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (folder / "token").exists():
        raise EngineError(
            "the provisioner runs in no Pod with a service account, and PARALLELRUN_KUBERNETES_KUBECONFIG names no file"
        )
    address = f"[{host}]" if ":" in host else host
    try:
        return ApiAccess(
            url=f"https://{address}:{port}",
            namespace=(folder / "namespace").read_text().strip(),
            tls=ssl.create_default_context(cafile=str(folder / "ca.crt")),
            token_file=folder / "token",
        )
    except (OSError, ssl.SSLError) as error:
        raise EngineError(f"the service account in {folder} can't be used: {error}") from error


def from_file(path: Path) -> ApiAccess:
    """By the current context of a kubeconfig.

    Raises:
        EngineError: it can't be read, or needs a program to log in.
    """
    try:
        config = yaml.safe_load(path.read_text())
        context = _named(config["contexts"], config["current-context"], "context")
        cluster = _named(config["clusters"], context["cluster"], "cluster")
        user = _named(config.get("users") or [], context["user"], "user") if context.get("user") else {}
        if "exec" in user or "auth-provider" in user:
            raise EngineError(f"{path}: a user who logs in by a program can't be used here; give it a token")
        return ApiAccess(
            url=str(cluster["server"]).rstrip("/"),
            namespace=str(context.get("namespace") or "default"),
            tls=_tls(cluster, user, path.parent),
            token=str(user.get("token", "")),
            token_file=path.parent / user["tokenFile"] if "tokenFile" in user else None,
        )
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError, LookupError) as error:
        raise EngineError(f"{path} can't be used as a kubeconfig: {type(error).__name__}: {error}") from error


def _named(items: list[dict[str, Any]], name: str, kind: str) -> dict[str, Any]:
    for item in items:
        if item["name"] == name:
            fields: dict[str, Any] = item[kind] or {}
            return fields
    raise LookupError(f"it has no {kind} {name!r}")


def _tls(cluster: dict[str, Any], user: dict[str, Any], folder: Path) -> ssl.SSLContext | None:
    if not str(cluster["server"]).startswith("https:"):
        return None
    authority = _data(cluster, "certificate-authority", folder)
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    certificate, key = _data(user, "client-certificate", folder), _data(user, "client-key", folder)
    if certificate and key:
        with tempfile.NamedTemporaryFile(prefix="kubernetes-") as file:  # the library reads nothing but files
            file.write(key + b"\n" + certificate)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def _data(fields: dict[str, Any], name: str, folder: Path) -> bytes:
    """Return what a field has, itself or in a file; empty: neither."""
    if f"{name}-data" in fields:
        return base64.b64decode(fields[f"{name}-data"])
    return (folder / fields[name]).read_bytes() if name in fields else b""
