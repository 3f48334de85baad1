"""The operator's settings that all engines have whose nodes are of an image: which images, and what they mount."""

from __future__ import annotations

from pydantic_settings import BaseSettings, SettingsConfigDict

from parallelrun_provisioner.policy.images import is_allowed


class ImageSettings(BaseSettings):
    """The images of nodes; lists have ',' between their entries."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)

    image: str = "parallelrun-agent"
    """The image of nodes whose compute names none."""
    images: str = ""
    """Images that computes and jobs may name besides, as patterns such as `registry.example.org/team/*`: `*` stands for
    one part of a path, `**` for any number; without a host, they are Docker Hub's. Who makes an image that is a node
    can do there what its agent can: allow only those that you trust."""

    def allows(self, image: str) -> bool:
        """Return whether nodes may be of this image."""
        return image == self.image or is_allowed(image, words(self.images))


def words(text: str) -> list[str]:
    """The entries of a list."""
    return [word.strip() for word in text.split(",") if word.strip()]


def parsed_mount(text: str, noun: str, examples: str) -> tuple[str, str, bool]:
    """Return source, target, and whether it is read-only, of `SOURCE:TARGET` or `SOURCE:TARGET:ro`.

    Raises:
        ValueError: it is neither.
    """
    source, target, mode = [*text.split(":"), "", ""][:3]
    if text.count(":") > 2 or not source or not target.startswith("/") or mode not in ("", "ro", "rw"):
        raise ValueError(f"{text!r} is no {noun}, such as {examples}")
    return source, target, mode == "ro"
