"""The calls of Kubernetes' API that are needed, by plain REST."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx

from parallelrun_core.untrusted.sanitize import in_one_line
from parallelrun_provisioner.engines.interface import EngineError, LaunchRefused
from parallelrun_provisioner.engines.kubernetes.access import ApiAccess

_TIMEOUT_S: Final = 20.0
_PAGE: Final = 500
_REFUSED: Final = frozenset({400, 403, 404, 405, 413, 422})


class Api:
    """The Pods of one namespace, and who owns them."""

    def __init__(self, access: ApiAccess, namespace: str) -> None:
        self._access = access
        self._namespace = f"/api/v1/namespaces/{quote(namespace, safe='')}"
        self._pods = f"{self._namespace}/pods"
        # Nothing of the environment, such as a proxy or a .netrc, has a say in whom the token is sent to.
        verify = access.tls if access.tls is not None else True
        self._client = httpx.Client(base_url=access.url, verify=verify, timeout=_TIMEOUT_S, trust_env=False)

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Ask for a Pod; one of this name that is there already is left alone.

        Raises:
            LaunchRefused: in the API's words.
            EngineError: it doesn't answer, or can't now.
        """
        answer = self._call("POST", self._pods, json=manifest)
        if answer.status_code in _REFUSED:
            raise LaunchRefused(_message(answer))
        if answer.status_code != 409:
            _check(answer)

    def list(self, selector: str) -> Iterator[dict[str, Any]]:
        """The Pods with these labels, whatever has become of them.

        Raises:
            EngineError: unknown.
        """
        more = ""
        while True:
            query = {"labelSelector": selector, "limit": str(_PAGE), **({"continue": more} if more else {})}
            answer = self._call("GET", self._pods, params=query)
            _check(answer)
            page = answer.json()
            yield from page["items"]
            more = page.get("metadata", {}).get("continue", "")
            if not more:
                return

    def delete(self, name: str) -> None:
        """End a Pod, after the time that its manifest gives it, and remove it. None of this name: nothing happens.

        Raises:
            EngineError: it may still be there.
        """
        answer = self._call("DELETE", f"{self._pods}/{quote(name, safe='')}")
        if answer.status_code != 404:
            _check(answer)

    def uid_of_account(self, name: str) -> str:
        """Return what Kubernetes itself knows a service account by.

        Raises:
            LaunchRefused: there is none of this name, or it may not be asked for.
            EngineError: unknown.
        """
        answer = self._call("GET", f"{self._namespace}/serviceaccounts/{quote(name, safe='')}")
        if answer.status_code in _REFUSED:
            raise LaunchRefused(_message(answer))
        _check(answer)
        return str(answer.json()["metadata"]["uid"])

    def close(self) -> None:
        self._client.close()

    def _call(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            return self._client.request(method, path, headers=self._access.authorization(), **request)
        except (httpx.HTTPError, OSError) as error:
            raise EngineError(f"Kubernetes doesn't answer at {self._access.url}: {error}") from error


def _check(answer: httpx.Response) -> None:
    if not answer.is_success:
        raise EngineError(f"Kubernetes says: {_message(answer)}")


def _message(answer: httpx.Response) -> str:
    """Its words, without what repeats them."""
    try:
        message = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        message = answer.text
    return in_one_line(message)[:1000] or f"HTTP status {answer.status_code}"
