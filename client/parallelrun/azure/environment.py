"""The environment variables with which Azure ML's client uses a ParallelRun server instead of Azure."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from parallelrun.azure import fronts
from parallelrun.errors import ParallelRunError

_OF_NOBODY: Final = "00000000-0000-0000-0000-000000000000"
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
CONFIG: Final = {"subscription_id": _OF_NOBODY, "resource_group": "local", "workspace_name": "parallelrun"}
"""A workspace for those who have none: any names will do."""


def variables(url: str, token: str) -> dict[str, str]:
    """Return what the client must have in its environment; a front is started if the server has no TLS.

    Args:
        url: of the API.
        token: its token; empty: it needs none.

    Raises:
        ParallelRunError: the URL is none, or the front doesn't start.
    """
    server = _server_of(url)
    if server is None:
        raise ParallelRunError(f"{url!r} is no URL of a server.")
    scheme, host, port = server
    base, more = url.rstrip("/"), {}
    if scheme == "http":
        front = fronts.start(host, port)
        base, more = f"https://127.0.0.1:{front.port}", {"REQUESTS_CA_BUNDLE": front.bundle, **_beside_proxies()}
    return {
        "AZUREML_DEV_URL_MFE": f"{base}/azure",
        "IDENTITY_ENDPOINT": f"{base}/azure/identity",
        "IDENTITY_HEADER": token or "none",
        # Of all the places in which DefaultAzureCredential looks for credentials, only this one.
        "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential",
        # It remembers for a week which components a workspace has, and a new cluster has the same workspace.
        "AZURE_ML_DISABLE_ON_DISK_CACHE": "true",
        **more,
    }


def stop(url: str) -> bool:
    """Stop the front of a server; False if there was none."""
    server = _server_of(url)
    return server is not None and fronts.stop(*server[1:])


def _server_of(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of a server; None: the URL names none."""
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError:  # a port that there can't be, or half an address
        return None
    return (parts.scheme, parts.hostname, port) if parts.scheme in ("http", "https") and parts.hostname else None


def write_config(folder: Path) -> Path:
    """Write a `config.json`, which `MLClient.from_config` reads; one that is there stays.

    Raises:
        OSError: it can't be written.
    """
    path = folder / "config.json"
    if not path.exists():
        path.write_text(json.dumps(CONFIG, indent=2) + "\n")
    return path


def _beside_proxies() -> dict[str, str]:
    """Return what keeps requests to this machine away from a proxy, if there is one."""
    if not any(os.environ.get(name) or os.environ.get(name.lower()) for name in _PROXIES):
        return {}
    no_proxy = os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or ""
    names = [name for name in no_proxy.split(",") if name]
    return {"NO_PROXY": ",".join([*names, *({"127.0.0.1"} - set(names))])}
