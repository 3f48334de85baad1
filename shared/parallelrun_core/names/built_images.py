"""Names of images that are built for jobs: by what an image is built of, so that whoever reads the name can build it.

No image of a registry can have such a name: what is before the first `/` would be a host, and its port no number.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

DOCKERFILE: Final = "Dockerfile"
"""What a Dockerfile is called when nobody says so."""
_NAME: Final = re.compile(r"build:([0-9a-f]{64})/(.+)", re.DOTALL)


class BuiltImage(NamedTuple):
    """An image by what it is built of."""

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
