"""The schemes of URLs of data: a row for each, from which all that knows them by name is derived."""

from __future__ import annotations

from typing import Final, NamedTuple


class Scheme(NamedTuple):
    kind: str
    """The kind of storage, as `storage/stores.py` has one for it; any other kind is refused by name."""
    called: str
    """The name that people have for this kind of storage."""
    canonical: str
    """The scheme that stands for this one in addresses of objects."""
    is_container_first: bool = False
    """True: the host is `CONTAINER@ACCOUNT`."""
    endpoints: tuple[str, ...] = ()
    """Environment variables with the URL of a server to ask instead, the one that counts first."""


_S3: Final = Scheme("s3", "Amazon S3", "s3", endpoints=("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"))
_GS: Final = Scheme("gs", "Google Cloud Storage", "gs", endpoints=("STORAGE_EMULATOR_HOST",))
_AZ: Final = Scheme("azure", "Azure Storage", "az", endpoints=("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"))
_ABFS: Final = _AZ._replace(canonical="abfs", is_container_first=True)
_ABFSS: Final = _ABFS._replace(canonical="abfss")
SCHEMES: Final = {
    "s3": _S3, "s3a": _S3, "s3n": _S3,
    "gs": _GS, "gcs": _GS,
    "az": _AZ,
    "abfs": _ABFS, "wasb": _ABFS,
    "abfss": _ABFSS, "wasbs": _ABFSS, "adl": _ABFSS,
    "https": Scheme("https", "a web server", "https"),
    "http": Scheme("https", "a web server", "http"),
    "ftp": Scheme("ftp", "an FTP server", "ftp"),
}  # fmt: skip
"""By name, in lower case."""
OBJECT_KINDS: Final = frozenset({"s3", "gs", "azure", "https"})
"""The kinds of which `storage/objects/` is the storage."""
OBJECT_SCHEMES: Final = tuple(
    f"{name}://" for name in dict.fromkeys(row.canonical for row in SCHEMES.values() if row.kind in OBJECT_KINDS)
)
"""The beginnings of all canonical URLs of these kinds."""


def canonical_scheme(scheme: str) -> str:
    """Return the scheme that stands for another one in addresses of objects; itself if it is unknown."""
    scheme = scheme.lower()
    return SCHEMES[scheme].canonical if scheme in SCHEMES else scheme


def is_container_first(scheme: str) -> bool:
    """Return whether the host of such a URL is `CONTAINER@ACCOUNT`."""
    return scheme in SCHEMES and SCHEMES[scheme].is_container_first


def schemes_like(scheme: str) -> frozenset[str]:
    """The schemes of canonical URLs that one scheme, in any of its spellings, stands for."""
    row = SCHEMES.get(scheme.lower())
    if row is None or row.kind != "azure":  # http:// doesn't stand for https://
        return frozenset({canonical_scheme(scheme)})
    return frozenset(each.canonical for each in SCHEMES.values() if each.kind == row.kind)


def endpoint_variables(*schemes: str) -> tuple[str, ...]:
    """Return the environment variables that name another server for the stores of these schemes."""
    return tuple(dict.fromkeys(name for each in schemes if each in SCHEMES for name in SCHEMES[each].endpoints))
