"""What is no URL of a server is told as such to whoever wants Azure's client to use it."""

import pytest

from parallelrun.azure import environment
from parallelrun.errors import ParallelRunError


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:99999", "http://127.0.0.1:x", "http://[::1", "ftp://host", "https://"]
)
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ParallelRunError, match="is no URL of a server"):
        environment.variables(url, "")
    assert environment.stop(url) is False


def test_a_server_with_tls_needs_no_front() -> None:
    assert environment.variables("https://host:8443/", "t")["IDENTITY_ENDPOINT"] == "https://host:8443/azure/identity"
