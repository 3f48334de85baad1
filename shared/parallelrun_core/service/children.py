"""The environment variables that the programs get which our services start: installers, git, interpreters, engines.

Such a program may run code of others, such as the setup of a package without a wheel, which must not find the password
of Redis there, or whatever else an operator has given to the service. So each name stands in one table, and no prefix
lets in what nobody thought of (`UV_PUBLISH_TOKEN`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final

_PROGRAM: Final = frozenset({"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LD_LIBRARY_PATH"})
_LANGUAGE: Final = frozenset(
    {
        "LANG", "LANGUAGE", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME",
    }
)  # fmt: skip
_FOLDERS: Final = frozenset({"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"})
_PROXIES: Final = frozenset(
    {
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    }
)  # fmt: skip
_CERTIFICATES: Final = frozenset(
    {
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT",
        "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_INSECURE_HOST", "PIP_TRUSTED_HOST",
    }
)  # fmt: skip
_INDEXES: Final = frozenset(
    {
        "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX",
        "UV_INDEX_STRATEGY", "UV_KEYRING_PROVIDER", "UV_CONFIG_FILE", "UV_NO_CONFIG", "UV_OFFLINE",
        "UV_EXCLUDE_NEWER", "UV_PYTHON_INSTALL_MIRROR", "UV_PYPY_INSTALL_MIRROR",
        "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CONFIG_FILE", "NETRC",
    }
)  # fmt: skip
_INSTALLING: Final = frozenset(
    {
        "UV_CACHE_DIR", "UV_NO_CACHE", "UV_LINK_MODE", "UV_PYTHON_INSTALL_DIR", "UV_PYTHON_DOWNLOADS",
        "UV_PYTHON_PREFERENCE", "UV_MANAGED_PYTHON", "UV_NO_MANAGED_PYTHON", "UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES",
        "UV_CONCURRENT_DOWNLOADS", "UV_CONCURRENT_BUILDS", "UV_CONCURRENT_INSTALLS",
        "UV_TORCH_BACKEND", "UV_RESOLUTION", "UV_PRERELEASE",
    }
)  # fmt: skip
_SEARCH_OF_PYTHON: Final = frozenset({"PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE", "VIRTUAL_ENV", "CONDA_PREFIX"})
_DEVICES: Final = frozenset({"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"})

_KEYRING: Final = "UV_KEYRING_PROVIDER"
_NO_KEYRING: Final = "disabled"
_NAMED_INDEX: Final = re.compile(r"(?:^|\s)([A-Za-z0-9][\w.-]*)=")
WITH_USER: Final = re.compile(r"://[^/\s@]+@")
"""A URL with a user's name, and maybe a password, before its host."""


class Child(Enum):
    """A kind of program that a service starts, with the names of the variables that it gets."""

    INSTALLER = _PROGRAM | _LANGUAGE | _FOLDERS | _PROXIES | _CERTIFICATES | _INDEXES | _INSTALLING
    """uv and pip, and the git that uv starts."""
    INTERPRETER = _PROGRAM | _LANGUAGE | _SEARCH_OF_PYTHON
    """The Python of an image, which says what it has."""
    DRIVER = _PROGRAM | _DEVICES
    """A tool of a device's driver, such as nvidia-smi."""


def variables_for(child: Child, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that this kind of program gets, of those that its service has."""
    names = child.value
    if child is Child.INSTALLER:
        names = names.union(_passwords_of_indexes(variables))
    return {name: value for name, value in variables.items() if name in names}


def with_credentials(variables: Mapping[str, str]) -> frozenset[str]:
    """The names of an installer's variables that let their owner into a package index or a proxy: passwords of indexes,
    files with passwords, the keyring, and URLs with a user's name."""
    passwords = {*_passwords_of_indexes(variables), "NETRC"}
    if variables.get(_KEYRING, _NO_KEYRING) not in ("", _NO_KEYRING):
        passwords.add(_KEYRING)
    urls = {
        name for name in _PROXIES | _INDEXES | _INSTALLING if WITH_USER.search(variables.get(name, ""))
    }  # fmt: skip
    return frozenset((passwords | urls) & variables.keys())


def without_installers_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """These variables without what is for installers only: every setting of uv and pip that may hold a password, or is
    not known. Proxies stay, as who uses the network needs them."""
    secret = with_credentials(variables) - _PROXIES
    return {
        name: value
        for name, value in variables.items()
        if name not in secret
        and (not name.startswith(("UV_", "PIP_")) or name in Child.INSTALLER.value)
    }  # fmt: skip


def _passwords_of_indexes(variables: Mapping[str, str]) -> Iterator[str]:
    """The variables with the users and passwords of the indexes that have names, as uv makes them of these names."""
    for setting in ("UV_INDEX", "UV_DEFAULT_INDEX"):
        for name in _NAMED_INDEX.findall(variables.get(setting, "")):
            stem = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
            yield from (name for name in (f"{stem}_USERNAME", f"{stem}_PASSWORD") if name in variables)
