"""A build on the Engine, in a thread: a call of the provisioner may take seconds only, and a build takes minutes."""

from __future__ import annotations

import base64
import json
import os
import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final

from parallelrun_core.code.dockerfile_check import check_dockerfile
from parallelrun_core.code.stored import DamagedCode, check_snapshot
from parallelrun_core.errors import InvalidInput
from parallelrun_core.service.telemetry import logger
from parallelrun_provisioner.engines.docker.building.log import BuildLog
from parallelrun_provisioner.engines.docker.building.sent import tar_of
from parallelrun_provisioner.engines.docker.client import Connection, shortened, words_of
from parallelrun_provisioner.engines.interface import EngineError

log = logger()

_CONNECT_S: Final = 20
_NO_LOGINS: Final = base64.urlsafe_b64encode(b"{}").decode()
"""For images that a Dockerfile builds on: the library would send the passwords of this user's own registries."""


class _Stopped(Exception):
    """Nobody wants it any more."""


class Building:
    """A build, from its beginning. It breaks off when this process ends, or its connection does.

    Args:
        folder: what is built.
        parameters: of `POST /build`.
        limit_s: how long it may take, its answer included.
        jobs: who waits for it.
        builds_on: whether its Dockerfile may name an image.
    """

    def __init__(
        self,
        folder: Path,
        parameters: Mapping[str, Any],
        jobs: Collection[str],
        builds_on: Callable[[str], bool],
        *,
        limit_s: float,
    ) -> None:
        self._builds_on = builds_on
        self._jobs = set(jobs)
        self._folder = folder
        self._parameters = parameters
        self._limit_s = limit_s
        self._is_stopped = Event()
        self._lock = Lock()
        self._socket: socket.socket | None = None
        """That by which the Engine tells how it goes."""
        self.log = BuildLog()
        self._began = time.monotonic()
        self.said = "waiting"
        """What the Engine says of it at present."""
        self.failure = ""
        """Why there is no image, in the Engine's words."""
        self.trouble = ""
        """Why it broke off, though it may be built another time."""
        self.over_at: float | None = None
        """Since when nothing more comes of it: it has ended, or was stopped."""
        Thread(target=self._run, name=f"build {parameters['t']}", daemon=True).start()

    def is_new_for(self, jobs: Collection[str]) -> bool:
        """Return whether one of those who wait now has not waited all the time since it was over: none of its failures
        was for that one. Asked in each round."""
        if self.over_at is None:
            self._jobs.update(jobs)
            return False
        self._jobs.intersection_update(jobs)
        return len(self._jobs) < len(set(jobs))

    def stop(self, why: str = "") -> None:
        """Break it off: the Engine ends a build whose client goes. One that hasn't answered yet goes when it does, or
        when the time of this build is over.

        Args:
            why: for those who still wait for it.
        """
        with self._lock:
            if self.over_at is not None:
                return
            self.failure = self.failure or why
            self.over_at = time.monotonic()
            self._is_stopped.set()
            if self._socket is not None:
                with suppress(OSError):  # the Engine was faster
                    self._socket.shutdown(socket.SHUT_RDWR)

    def stop_if_late(self) -> None:
        """Break it off when its time is over."""
        if time.monotonic() - self._began > self._limit_s:
            self.stop(f"it takes longer than {self._limit_s:g} s (PARALLELRUN_DOCKER_BUILD_SECONDS of the provisioner)")

    def _run(self) -> None:
        tag, connection = self._parameters["t"], Connection()
        log.info("image_build_begun", image=tag)
        try:
            check_snapshot(self._folder)
            self._check_dockerfile()
            with connection.asking() as client:
                self._build(client)
        except _Stopped:
            pass
        except (DamagedCode, InvalidInput) as error:
            self.failure = self.failure or str(error)
        except EngineError as error:
            self.trouble = str(error)
            self.stop_if_late()  # it was not the Engine that gave up
        except ValueError as error:
            self.trouble = f"the Engine's answer can't be read: {error}"
        except OSError as error:
            self.trouble = f"what it is built of can't be read: {error.strerror or error}"
        finally:
            connection.close()
            if why := self.failure or self.trouble:
                self.log.write(f"{why}\n")
            log.info("image_build_ended", image=tag, failure=self.failure, trouble=self.trouble)
            with self._lock:
                self.over_at = self.over_at or time.monotonic()

    def _check_dockerfile(self) -> None:
        """Check the Dockerfile that the Engine is sent, whoever has accepted the job."""
        name = self._parameters["dockerfile"]
        with suppress(FileNotFoundError):  # the Engine says so
            for image in sorted(check_dockerfile((self._folder / name).read_bytes(), name)):
                if not self._builds_on(image):
                    message = f"{name}: the operator of the provisioner lets no job build on {image[:200]}"
                    raise InvalidInput(f"{message} (PARALLELRUN_DOCKER_BUILD_IMAGES)")

    def _build(self, client: Any) -> None:
        import requests

        url = f"{client.base_url}/v{client.api_version}/build"
        headers = {"Content-Type": "application/x-tar", "X-Registry-Config": _NO_LOGINS}
        # The Engine may be silent for as long as a step takes. Until its answer begins, there is nothing to cut.
        timeout = (_CONNECT_S, self._limit_s)
        with client.post(
            url, params=self._parameters, data=self._sent(), headers=headers, stream=True, timeout=timeout
        ) as response:
            if not response.ok:
                self.failure = self.failure or _refusal(response)
                return
            self._watch(response)
            try:
                for line in response.iter_lines():
                    self._note(json.loads(line) if line.strip() else {})
            except (requests.RequestException, OSError, ValueError):
                if not self._is_stopped.is_set():
                    raise
            finally:
                self._unwatch()

    def _sent(self) -> Iterator[bytes]:
        for chunk in tar_of(self._folder):
            if self._is_stopped.is_set():
                raise _Stopped
            yield chunk

    def _watch(self, response: Any) -> None:
        """Let `stop` end this connection from now on."""
        with self._lock:
            if self._is_stopped.is_set():
                raise _Stopped
            self._socket = socket.socket(fileno=os.dup(response.raw.fileno()))

    def _unwatch(self) -> None:
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None

    def _note(self, event: Mapping[str, Any]) -> None:
        if "error" in event:
            self.failure = self.failure or shortened(str(event["error"]))
            return
        if "status" in event:  # of an image that is fetched, which it builds on
            parts = (str(event.get(part) or "") for part in ("id", "status", "progress"))
            self.said = shortened(" ".join(filter(None, parts)))
            if not event.get("progressDetail"):
                self.log.write(f"{self.said}\n")
            return
        text = str(event.get("stream") or "")
        self.log.write(text)
        if text.startswith("Step "):
            self.said = shortened(text)


def _refusal(response: Any) -> str:
    import requests
    from docker.errors import APIError, create_api_error_from_http_exception

    try:
        response.raise_for_status()
    except requests.HTTPError as error:
        try:
            create_api_error_from_http_exception(error)
        except APIError as refused:
            return words_of(refused)
    return ""
