"""The environment variables with which packages are installed: what that takes, and nothing else of the agent's.

An installer runs code of others, such as the setup of packages without a wheel, which must not find the password of
Redis there, or whatever else the agent was started with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NAMES: Final = frozenset(
    {
        "PATH", "HOME", "TMPDIR", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
        "XDG_DATA_HOME", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC",
    }
)  # fmt: skip
_BEGINNINGS: Final = ("UV_", "PIP_", "LC_")


def installers(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of these variables that an installer gets: paths, languages, proxies, certificates, its own settings."""
    return {name: value for name, value in variables.items() if name.upper() in _NAMES or name.startswith(_BEGINNINGS)}
