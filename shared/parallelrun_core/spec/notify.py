"""The fields of a job that say who is notified when it has ended, such as a webhook."""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field, field_validator

from parallelrun_core.described import Strict
from parallelrun_core.names.patterns import ASSET_NAME
from parallelrun_core.untrusted.addresses import Reach, is_literal_of

_PLAIN: Final = re.compile(r"[!-~]+")
_URL: Final = re.compile(
    r"https?://(?P<user>[^/?#]*@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:(?P<port>\d{1,5}))?([/?][^#]*)?(?P<fragment>#.*)?"
)
_LAST_PORT: Final = 65535


def checked_url(value: str) -> str:
    """The URL, if a notice may be sent there as far as one can tell without asking for its address.

    Raises:
        ValueError: it can't.
    """
    parts = _URL.fullmatch(value) if _PLAIN.fullmatch(value) else None
    if parts is None or int(parts["port"] or 0) > _LAST_PORT:
        raise ValueError("must be a URL such as https://example.com/hook")
    if parts["user"]:
        raise ValueError("must not have credentials; name a key with `secret`, which signs the request")
    if parts["fragment"]:
        raise ValueError("must not have a part after '#', which is sent to nobody")
    host = parts["host"].strip("[]")
    if is_literal_of(host, Reach.MACHINE):
        raise ValueError(f"{host} is an address that no notice is sent to")
    return value


class Notify(Strict):
    """The request that is sent when the job has ended."""

    url: str = Field(max_length=2048)
    """`https://` or `http://`, without credentials."""
    secret: str = Field(default="", pattern=rf"{ASSET_NAME}|^$")
    """Name of the key that signs the request: the file `webhooks/HOST/NAME` in the masters' folder of secrets, for the
    host of the URL. Not signed when empty."""

    _of_the_web = field_validator("url")(checked_url)


class Notified(Strict):
    """The fields of a job, and of a pipeline, that say who is notified of its end; None: nobody.

    Trials of `parallelrun tune` have none of them, and `parallelrun run` says that it notifies nobody.
    """

    notify: Notify | None = None
    """The URL that is told when the job has ended: `{url: …, secret: NAME}`; a plain string is short for `{url: …}`."""

    @field_validator("notify", mode="before")
    @classmethod
    def _plain_notify(cls, value: object) -> object:
        return {"url": value} if isinstance(value, str) else value
