"""Settings of this machine for stores that no datastore describes, where the library doesn't look by itself.

It knows most variables of the stores' own tools, and the roles of machines and containers. Of what else these tools
know, this adds profiles and `~/.aws`, by botocore, and the names that Azure's command line has for its variables.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from parallelrun_core.storage.schemes import endpoint_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from obstore.store import GCSConfig, S3Credential

_BY_THE_LIBRARY: Final = (
    "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)  # fmt: skip
_OF_PROFILES: Final = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")
_YES: Final = frozenset({"1", "true", "on", "yes", "y"})
"""What the library takes for true."""
_VALID_S: Final = 300
"""botocore renews what expires a quarter of an hour before."""
_NOBODY: Final = {"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
"""What the library takes for the account of somebody who needs none."""
_OF_AZURES_COMMANDS: Final = {
    "account_name": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"),
    "account_key": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"),
}
"""The name that the library knows, and the one that people know."""
NO_KEYS: Final = (
    "there are no credentials for S3 here: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile of ~/.aws "
    "with AWS_PROFILE, give this machine a role, or name a datastore; for public data, a datastore with anonymous: true"
)


class NoCredentials(OSError):
    """Nothing here lets us in; says what to set."""

    def __str__(self) -> str:
        return str(self.strerror)


def s3_credentials() -> Callable[[], S3Credential] | None:
    """Return what finds credentials for S3; None: the library itself.

    Raises:
        NoCredentials: there are none.
    """
    has_keys = os.environ.get("AWS_ACCESS_KEY_ID") and os.environ.get("AWS_SECRET_ACCESS_KEY")
    if (has_keys and not os.environ.get("AWS_PROFILE")) or is_unsigned() or library_finds_credentials():
        return None
    from botocore.session import get_session

    with _of_profiles():
        credentials: Any = get_session().get_credentials()
    if credentials is None:
        raise NoCredentials(13, NO_KEYS)

    def present() -> S3Credential:
        with _of_profiles():
            frozen = credentials.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + timedelta(seconds=_VALID_S),
        }

    present()  # those of SSO and of other roles are asked for only now
    return present


def is_unsigned() -> bool:
    """Return whether requests to S3 are sent without credentials, where no datastore names any."""
    return os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in _YES


def library_finds_credentials() -> bool:
    """Return whether the library itself asks a server for credentials for S3."""
    return any(os.environ.get(name) for name in _BY_THE_LIBRARY)


def s3_region() -> str:
    """The region that a profile names, where no variable does; else that which means any.

    Raises:
        NoCredentials: the profile can't be read.
    """
    if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        return region
    if not any(map(os.environ.get, _OF_PROFILES)) and not os.path.exists(os.path.expanduser("~/.aws")):
        return "us-east-1"
    from botocore.session import get_session

    with _of_profiles():
        return get_session().get_config_variable("region") or "us-east-1"


@contextmanager
def _of_profiles() -> Iterator[None]:
    """Raise as NoCredentials what is wrong with profiles, such as that there is none of that name."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise NoCredentials(13, f"{error}: see AWS_PROFILE, and ~/.aws on this machine") from error


def azure_options(*, has_account: bool = False) -> dict[str, Any]:
    """Return what Azure's own commands would take from the environment, and the library would not.

    Args:
        has_account: the URL names the account.
    """
    return {
        option: value
        for option, (variable, other) in _OF_AZURES_COMMANDS.items()
        if not (has_account and option == "account_name")
        and not os.environ.get(variable)
        and (value := os.environ.get(other, ""))
    }


def endpoint_of(scheme: str) -> str:
    """The server that is asked instead of a provider's own for stores of this scheme; empty: the environment names
    none.
    """
    return next(filter(None, map(os.environ.get, endpoint_variables(scheme))), "")


def google_options(emulator: str) -> GCSConfig:
    """Return the settings for another server, if there is one."""
    return at_google_server(emulator if "://" in emulator else f"http://{emulator}") if emulator else {}


def at_google_server(url: str) -> GCSConfig:
    """Return the settings for a server of Google's protocol that wants no credentials."""
    return {"service_account_key": json.dumps({**_NOBODY, "gcs_base_url": url.rstrip("/")})}
