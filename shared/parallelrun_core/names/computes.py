"""Names of computes, as documents write them, and of images that are built for jobs."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_BY_ID: Final = re.compile(r".*/computes/([^/]+)", re.IGNORECASE | re.DOTALL)
NOTE: Final = "it names a compute, and has no effect as long as the server has none"
"""What is said of each name where no compute is defined, or nobody knows."""
DOCKERFILE: Final = "Dockerfile"
"""What a Dockerfile is called when nobody says so."""
_NAME: Final = re.compile(r"build:([0-9a-f]{64})/(.+)", re.DOTALL)


def plain_name(named: str) -> str:
    """The name itself: `cpus`, for `azureml:cpus` and for the id that Azure ML has for it."""
    name = named.strip().removeprefix("azureml:")
    by_id = _BY_ID.fullmatch(name)
    return by_id[1] if by_id else name


class BuiltImage(NamedTuple):
    """An image by what it is built of, so that whoever reads its name can build it.

    No image of a registry can have such a name: what is before the first `/` would be a host, and its port no number.
    """

    context: str
    """The snapshot in the code store of the folder that its Dockerfile copies from."""
    dockerfile: str
    """The path of the Dockerfile in it."""

    @property
    def name(self) -> str:
        """Return what nodes and launches call it."""
        return f"build:{self.context}/{self.dockerfile}"


def built_image_of(name: str) -> BuiltImage | None:
    """The image to build that is called so; None: this is the name of an image that there is."""
    match = _NAME.fullmatch(name)
    return BuiltImage(match[1], match[2]) if match else None
