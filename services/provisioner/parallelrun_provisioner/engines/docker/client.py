"""The connection to a Docker Engine, made when it is first needed, and the Engine's own words for what went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

from parallelrun_core.untrusted.sanitize import in_one_line
from parallelrun_provisioner.engines.interface import EngineError, LaunchRefused

_TIMEOUT_S: Final = 20
_ANY_VERSION: Final = "1.24"
"""Not sent: which version the Engine speaks is asked without one."""
_LONGEST: Final = 500
"""As many characters of the Engine's words as people read."""


class Connection:
    """A client of the Engine that `DOCKER_HOST` names, as for Docker's own tools."""

    def __init__(self) -> None:
        self._client: Any = None

    @contextmanager
    def asking(self) -> Iterator[Any]:
        """The client, a `docker.APIClient`, for some calls. Its types, in a package of others, lack many of them.

        Raises:
            EngineError: the Engine doesn't answer, or refuses. Its errors of class APIError are for `refusing`.
        """
        import requests
        from docker.errors import APIError, DockerException

        try:
            if self._client is None:
                self._client = _connected()
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


def _connected() -> Any:
    """A client that speaks the Engine's own version of the API, and trusts whom `DOCKER_CERT_PATH` says."""
    with closing(_client(_ANY_VERSION)) as first:
        return _client(first.version(api_version=False)["ApiVersion"])


def _client(version: str) -> Any:
    import docker
    from docker.utils import kwargs_from_env

    client = docker.APIClient(version=version, timeout=_TIMEOUT_S, **kwargs_from_env())
    # Else a machine's own list of authorities (REQUESTS_CA_BUNDLE) would take the place of the Engine's, and a proxy or
    # a .netrc have a say, too.
    client.trust_env = False
    return client


def post(client: Any, path: str, body: dict[str, Any], headers: dict[str, str]) -> None:
    """Ask for something in the Engine's own words, where the library knows not all of them.

    Raises:
        APIError: of the library, as its own calls do.
    """
    import requests
    from docker.errors import create_api_error_from_http_exception

    url = f"{client.base_url}/v{client.api_version}{path}"
    response = client.post(url, json=body, headers=headers, timeout=_TIMEOUT_S)
    try:
        response.raise_for_status()
    except requests.HTTPError as error:
        create_api_error_from_http_exception(error)


@contextmanager
def refusing() -> Iterator[None]:
    """Return where the Engine's refusal is final: it has understood what is wanted, and will not do it."""
    from docker.errors import APIError

    try:
        yield
    except APIError as error:
        raise LaunchRefused(words_of(error)) from error


def words_of(error: Any) -> str:
    return shortened(str(error.explanation or error))


def shortened(text: str) -> str:
    """Shorten a text to one line that is not too long for a page."""
    line = in_one_line(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
