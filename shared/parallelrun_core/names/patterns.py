"""Patterns of names: the regular expressions that fields and schemas have, and the words for people."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

JOB_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,127}$"
JOB: Final = r"^job_[0-9a-z]{20}$"
ASSET_NAME: Final = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$"
"""A name, version or label of an asset, or the name of a key that signs requests: safe as the name of a file."""
PLAIN_NAME: Final = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$"
"""The name of a datastore, schedule, batch endpoint or deployment, or of a step of a pipeline."""
COMPUTE_NAME: Final = r"^[A-Za-z][A-Za-z0-9-]{0,30}[A-Za-z0-9]$"
"""The name of a compute, in the names of an engine's objects, which most engines limit to 63 characters."""
LIMIT_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
OWNER_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$"
"""The name of a person or a token."""
BUCKET: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$"
CONTAINER: Final = r"^[a-z0-9$][a-z0-9-]{0,62}$"
"""A container of Azure's blob storage, or a file system of its data lake."""
ACCOUNT: Final = r"^[a-z0-9]{3,24}$"
MAKER: Final = r"^(schedule|endpoint|pipeline)(:.{1,300})?$"
EVENT_ID: Final = r"^(|\d{1,18}(-\d{1,18})?)$"
TAG_NAME: Final = r"^[^=\x00]+$"
TAG_VALUE: Final = r"^[^\x00]*$"
HEADER: Final = r"^[A-Za-z0-9-]{1,64}$"
USER_AND_GROUP: Final = r"^\d+:\d+$"
USER_AND_GROUP_BUT_ROOT: Final = r"^([1-9]\d*:[1-9]\d*)?$"
"""The same, but neither is root's; empty: neither is set."""

_IN_WORDS: Final = MappingProxyType({
    JOB_NAME: "1 to 128 letters, digits, spaces and . _ -, beginning with a letter or a digit",
    JOB: "the id of a job: job_ and 20 lowercase letters and digits",
    ASSET_NAME: "1 to 128 letters, digits and . _ -, beginning with a letter, a digit or _",
    PLAIN_NAME: "1 to 128 letters, digits, '_' and '-', not beginning with '-'",
    COMPUTE_NAME: "2 to 32 letters, digits and '-', beginning with a letter and not ending with '-'",
    LIMIT_NAME: "1 to 64 letters, digits and . _ -, beginning with a letter or a digit",
    OWNER_NAME: "1 to 64 letters, digits and . _ @ -, beginning with a letter or a digit",
    BUCKET: "the name of a bucket: at least 2 letters, digits, '.', '_' and '-'",
    CONTAINER: "the name of a container: lowercase letters, digits and '-'",
    ACCOUNT: "the name of a storage account: 3 to 24 lowercase letters and digits",
    MAKER: "schedule, endpoint or pipeline, or one of these with a name, as in schedule:nightly",
    EVENT_ID: "the id of an event",
    TAG_NAME: "a text without '=' and NUL",
    TAG_VALUE: "a text without NUL",
    HEADER: "1 to 64 letters, digits and '-'",
    USER_AND_GROUP: "the numbers of a user and a group, as in 10001:10001",
    USER_AND_GROUP_BUT_ROOT: "the numbers of a user and a group, as in 10001:10001, not 0",
})  # fmt: skip


def in_words(pattern: str) -> str:
    """Return what a text must be that this regular expression matches; one that may be empty has `|^$` behind it."""
    return _IN_WORDS.get(pattern.removesuffix("|^$"), "of another form")
