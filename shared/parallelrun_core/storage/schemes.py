"""The schemes of URLs of data: a row for each, by which all others tell them apart.

A scheme of a store that speaks one of the protocols below is a row and nothing else. Its client finds the server by
`endpoints`, and lets itself in with the credentials of the protocol, or with those of a datastore.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple


class Scheme(NamedTuple):
    kind: str
    """The kind of storage."""
    called: str
    """The name that people have for this kind of storage."""
    canonical: str
    """The scheme that stands for this one in addresses of objects."""
    is_container_first: bool = False
    """True: the host is `CONTAINER@ACCOUNT`."""
    endpoints: tuple[str, ...] = ()
    """Environment variables with the URL of a server to ask instead, the one that counts first."""
    credentials: tuple[str, ...] = ()
    """Beginnings of the environment variables that let their owner in."""
    storage: str = "objects"
    """The package beside this module that is its storage, by its entry in `stores.py`; empty: it is refused by name."""
    protocol: Literal["s3", "gcs", "azure", ""] = ""
    """Chooses the client (`objects/clients.py`), and how an upload is completed: by S3's own protocol
    (`objects/uploads/s3.py`), or by copying it to its name; empty: the web's."""
    lists_in_order: bool = False
    """True: the provider's own servers list keys in order, and can begin after any name."""


_S3: Final = Scheme(
    "s3", "Amazon S3", "s3", endpoints=("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"), protocol="s3",
    lists_in_order=True, credentials=(
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_", "AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE",
    ),
)  # fmt: skip
_GS: Final = Scheme(
    "gs", "Google Cloud Storage", "gs", endpoints=("STORAGE_EMULATOR_HOST",), protocol="gcs", lists_in_order=True,
    credentials=("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"),
)  # fmt: skip
_AZ: Final = Scheme(
    "azure", "Azure Storage", "az", endpoints=("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"), protocol="azure",
    credentials=(
        "AZURE_STORAGE_", "AZURE_CLIENT_", "AZURE_FEDERATED_TOKEN", "AZURE_TENANT_ID", "AZURE_MSI_", "IDENTITY_",
        "MSI_",
    ),
)  # fmt: skip
_ABFSS: Final = _AZ._replace(canonical="abfss", is_container_first=True)
SCHEMES: Final = {
    "s3": _S3, "s3a": _S3, "s3n": _S3,
    "gs": _GS, "gcs": _GS,
    "az": _AZ,
    "abfs": _ABFSS, "wasb": _ABFSS, "abfss": _ABFSS, "wasbs": _ABFSS, "adl": _ABFSS,
    "https": Scheme("https", "a web server", "https"),
    "http": Scheme("http", "a web server", "http"),
    "ftp": Scheme("ftp", "an FTP server", "ftp", storage=""),
}  # fmt: skip
"""By name, in lower case."""
STORAGE_OF: Final = {row.kind: row.storage for row in SCHEMES.values() if row.storage}
"""The package that is the storage of each kind."""
STORED: Final = tuple(f"{name}://" for name in dict.fromkeys(row.canonical for row in SCHEMES.values() if row.storage))
"""The beginnings of all canonical URLs of these kinds."""
CREDENTIALS: Final = tuple(dict.fromkeys(name for row in SCHEMES.values() for name in row.credentials))
"""What the environment variables begin with that let their owner into a store."""


def scheme_of(store: str) -> Scheme | None:
    """Return the row of a store's URL; None for that of a datastore, or of a scheme that is unknown."""
    return SCHEMES.get(store.partition(":")[0])


def canonical_scheme(scheme: str) -> str:
    """Return the scheme that stands for another one in addresses of objects; itself if it is unknown."""
    scheme = scheme.lower()
    return SCHEMES[scheme].canonical if scheme in SCHEMES else scheme


def is_container_first(scheme: str) -> bool:
    """Return whether the host of such a URL is `CONTAINER@ACCOUNT`."""
    return scheme in SCHEMES and SCHEMES[scheme].is_container_first


def schemes_like(scheme: str) -> frozenset[str]:
    """The schemes of canonical URLs that one scheme, in any of its spellings, stands for: all of its kind."""
    row = SCHEMES.get(scheme.lower())
    if row is None:
        return frozenset({canonical_scheme(scheme)})
    return frozenset(each.canonical for each in SCHEMES.values() if each.kind == row.kind)


def endpoint_variables(*schemes: str) -> tuple[str, ...]:
    """Return the environment variables that name another server for the stores of these schemes."""
    return tuple(dict.fromkeys(name for each in schemes if each in SCHEMES for name in SCHEMES[each].endpoints))
