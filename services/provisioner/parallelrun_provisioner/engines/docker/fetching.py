"""Images that the Engine lacks are fetched in threads, because a call of the provisioner may take seconds only."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Final

from parallelrun_core.service.telemetry import logger
from parallelrun_provisioner.engines.docker.client import Connection, shortened
from parallelrun_provisioner.engines.interface import EngineError, LaunchRefused
from parallelrun_provisioner.policy.images import host_of, parse

log = logger()

_AGAIN_S: Final = 60.0
"""How long an image that could not be fetched is not tried again."""


@dataclass
class Fetch:
    """An image on its way, written by its thread and read by the provisioner's."""

    image: str
    said: str = "waiting"
    """The Engine's last message about the pull."""
    failure: str = ""
    """Why it can't be had, in the Engine's words."""
    ended_at: float | None = None


class Fetches:
    """The images that this engine is fetching, or could not fetch. For one thread.

    Args:
        login: the file with user and password of the images' registry.
    """

    def __init__(self, login: Path | None) -> None:
        self._login = login
        self._fetches: dict[str, Fetch] = {}

    def begin(self, image: str) -> None:
        """Fetch an image, unless that is going on.

        Raises:
            LaunchRefused: it could not be fetched a moment ago, or the registry's password can't be read.
        """
        fetch = self._fetches.get(image)
        if fetch is not None and fetch.failure and time.monotonic() - (fetch.ended_at or 0) < _AGAIN_S:
            raise LaunchRefused(fetch.failure)
        if fetch is None or fetch.ended_at is not None:
            login = read_login(self._login, image)
            fetch = self._fetches[image] = Fetch(image)
            login_note = (
                f" (the login {self._login.name!r} is that of another host)" if self._login and not login else ""
            )
            Thread(target=_fetch, args=(fetch, login, login_note), name=f"fetch {image}", daemon=True).start()

    def of(self, image: str) -> Fetch | None:
        """Return how it stands with an image; None: nobody has asked for it."""
        return self._fetches.get(image)


def read_login(path: Path | None, image: str) -> dict[str, str] | None:
    """User and password of the registry of an image; None: there are none, or they are those of another host.

    Raises:
        LaunchRefused: the file can't be read.
    """
    if path is None:
        return None
    try:
        fields = json.loads(path.read_text())
        if host_of(fields.get("host") or path.name) != parse(image).host:
            return None
        return {"username": str(fields["username"]), "password": str(fields["password"])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        error_name = type(error).__name__  # not its text, which may have a piece of the password
        raise LaunchRefused(
            f"user and password of the registry can't be read from {path} ({error_name}); it is JSON with username and "
            "password"
        ) from None


def _fetch(fetch: Fetch, login: dict[str, str] | None, login_note: str) -> None:
    connection = Connection()
    try:
        with connection.asking() as client:
            for event in client.pull(fetch.image, auth_config=login, stream=True, decode=True):
                _note(fetch, event)
    except EngineError as error:
        fetch.failure = str(error)
    finally:
        connection.close()
        fetch.failure = fetch.failure and f"{fetch.failure}{login_note}"
        fetch.ended_at = time.monotonic()
        log.info("image_fetched", image=fetch.image, failure=fetch.failure)


def _note(fetch: Fetch, event: dict[str, Any]) -> None:
    if "error" in event:
        fetch.failure = shortened(str(event["error"]))
    elif "status" in event:
        fetch.said = shortened(" ".join(str(event.get(part) or "") for part in ("status", "id", "progress")))
