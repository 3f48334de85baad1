"""The connection to a Docker Engine, made when it is first needed, and the Engine's own words for what went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from parallelrun_core.words import in_one_line
from parallelrun_provisioner.engines.interface import EngineError, LaunchRefused

if TYPE_CHECKING:
    from docker import APIClient

_TIMEOUT_S: Final = 20
_LONGEST: Final = 500
"""As many characters of the Engine's words as people read."""


class Connection:
    """A client of the Engine that `DOCKER_HOST` names, as for Docker's own tools.

    Answers of the Engine are those of its API (`docker.APIClient`).
    """

    def __init__(self) -> None:
        self._client: APIClient | None = None

    @contextmanager
    def asking(self) -> Iterator[APIClient]:
        """The client, for some calls.

        Raises:
            EngineError: the Engine doesn't answer, or refuses. Its errors of class APIError are for `refusing`.
        """
        import docker
        import requests
        from docker.errors import APIError, DockerException

        try:
            if self._client is None:
                self._client = docker.APIClient(version="auto", timeout=_TIMEOUT_S, **docker.utils.kwargs_from_env())
            yield self._client
        except APIError as error:
            raise EngineError(words_of(error)) from error
        except (DockerException, requests.RequestException, OSError) as error:
            raise EngineError(f"the Docker Engine doesn't answer: {shortened(str(error))}") from error

    def close(self) -> None:
        """Free the connection; it is made again when it is needed."""
        if self._client is not None:
            self._client.close()
            self._client = None


@contextmanager
def refusing() -> Iterator[None]:
    """Where the Engine's refusal is final: it has understood what is wanted, and will not do it."""
    from docker.errors import APIError

    try:
        yield
    except APIError as error:
        raise LaunchRefused(words_of(error)) from error


def words_of(error: Any) -> str:
    """What the Engine says of an error."""
    return shortened(error.explanation or str(error))


def shortened(text: str) -> str:
    """In one line, which is not too long for a page."""
    line = in_one_line(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
