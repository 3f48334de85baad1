"""The field `environment` of a job: the Python of its workers, its packages, and the image of its nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from parallelrun_core.described import Strict
from parallelrun_core.errors import InvalidInput
from parallelrun_core.names.assets import stored_code
from parallelrun_core.names.computes import DOCKERFILE, BuiltImage
from parallelrun_core.spec.conda import python_of, requirements_of, split_options, without_options
from parallelrun_core.spec.fields import MAX_PATH, STORED, without_nul
from parallelrun_core.spec.python_versions import is_too_old
from parallelrun_core.spec.requirements import checked_index_url, host_of, parse_requirement
from parallelrun_core.storage.supported import absolute_path, local_path


class PackageFields(Strict):
    """The packages of a Python, and where they are taken from, as a document has them: nothing in it is checked."""

    conda_file: dict[str, Any] = Field(default_factory=dict)
    """A conda environment; in a job file, this may also be the path of a file with it."""
    pip: tuple[str, ...] = ()
    """Requirements, as lines of a requirements file."""

    index_url: str = Field(default="", max_length=MAX_PATH)
    """The index that packages are taken from, with https; empty: the one that the node is configured with."""
    extra_index_urls: tuple[str, ...] = ()
    """More indexes, besides that one."""
    find_links: tuple[str, ...] = ()
    """Pages with links to packages."""
    prereleases: bool = False
    """Releases before a final one may be taken, too."""


class Packages(PackageFields):
    """The packages of a Python, and where they are taken from, with each line made anew of what was read."""

    @model_validator(mode="before")
    @classmethod
    def _options_are_fields(cls, document: object, info: ValidationInfo) -> object:
        return _with_options(document, is_stored=info.context == STORED) if isinstance(document, dict) else document

    @field_validator("pip", mode="before")
    @classmethod
    def _requirements(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, list | tuple):
            return value
        return tuple(_requirement(line, is_stored=info.context == STORED) for line in value)

    @field_validator("conda_file")
    @classmethod
    def _can_be_made(cls, value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if info.context != STORED:
            python_of(value)
            requirements_of(value)
        return value

    @field_validator("index_url", "extra_index_urls", "find_links")
    @classmethod
    def _with_https(cls, value: str | tuple[str, ...], info: ValidationInfo) -> str | tuple[str, ...]:
        if info.context == STORED or not value:
            return value
        return checked_index_url(value) if isinstance(value, str) else tuple(map(checked_index_url, value))

    @property
    def python(self) -> str:
        """The required version of Python; empty: any, also when it is one that the workers can't run in."""
        version = python_of(self.conda_file)
        return "" if is_too_old(version) else version

    @property
    def requirements(self) -> list[str]:
        """The packages to install, as lines of a requirements file, each made anew of what was read.

        Raises:
            ValueError: this job was accepted by an earlier release, and has one that nodes no longer install.
        """
        return [*requirements_of(self.conda_file), *(parse_requirement(line).text for line in self.pip)]

    @property
    def package_urls(self) -> dict[str, str]:
        """The URLs of packages, and of where to look for them, each with its field."""
        by_field = {
            "index_url": [self.index_url] if self.index_url else [],
            "extra_index_urls": self.extra_index_urls,
            "find_links": self.find_links,
        }
        named = {url: field for field, urls in by_field.items() for url in urls}
        of_packages = {
            "conda_file": requirements_of(self.conda_file), "pip": [parse_requirement(line).text for line in self.pip]
        }  # fmt: skip
        for field, lines in of_packages.items():
            named |= {url: field for line in lines if (url := parse_requirement(line).url)}
        return named

    def urls_elsewhere(self, hosts: Sequence[str]) -> dict[str, str]:
        """Return those of `package_urls` on other hosts than these; `*` stands for any host."""
        return {
            url: field for url, field in self.package_urls.items() if "*" not in hosts and host_of(url) not in hosts
        }

    @property
    def is_own(self) -> bool:
        """Return whether the workers need a Python of their own."""
        try:
            return bool(self.python or self.requirements)
        except ValueError:
            return True


def require_content(fields: Mapping[str, Any], pointer: str) -> None:
    """Make sure that there is something of which an environment can be made.

    Raises:
        InvalidInput: there is nothing.
    """
    if not any(fields.get(name) for name in ("image", "build", "conda_file", "pip")):
        raise InvalidInput.at(pointer, "it has neither image nor build nor conda_file", "as in conda_file: conda.yml")


class Environment(Packages):
    """The Python that runs the entry script; the agent's own when this is empty."""

    name: str = Field(default="", max_length=1024)
    """A label for people."""
    image: str = Field(default="", max_length=MAX_PATH)
    """The container image of the job's nodes, on a compute that has nodes of any image; elsewhere it has no effect."""
    build: Build | None = None
    """The Dockerfile of which the image is built, on a compute that builds images; not together with `image`."""

    def __deepcopy__(self, memo: object = None) -> Self:
        return self  # pydantic copies this default for each job, and nothing changes it

    @field_validator("build")
    @classmethod
    def _one_image(cls, value: Build | None, info: ValidationInfo) -> Build | None:
        if value is not None and info.data.get("image"):
            raise ValueError("set either image or build, not both")
        return value

    def relative_to(self, folder: Path) -> Self:
        """Return the environment with the path of what an image is built of made absolute."""
        if self.build is None or stored_code(self.build.path):
            return self
        path = absolute_path(self.build.path, folder)
        return self.model_copy(update={"build": self.build.model_copy(update={"path": path})})

    @property
    def node_image(self) -> str:
        """Return what the image of the job's nodes is called (`names/computes.py`), once the job is recorded;
        empty: it asks for none."""
        snapshot = stored_code(self.build.path) if self.build is not None else ""
        if self.build is None or not snapshot:
            return self.image
        return BuiltImage(snapshot, self.build.dockerfile_path).name


class Build(Strict):
    """A Dockerfile, and the folder that it copies from."""

    path: str = Field(min_length=1, max_length=MAX_PATH)
    """The folder; copied when the job is submitted."""
    dockerfile_path: str = Field(default=DOCKERFILE, min_length=1, max_length=1024)
    """The Dockerfile in it."""

    @field_validator("path")
    @classmethod
    def _can_be_copied(cls, value: str) -> str:
        return value if stored_code(value) else local_path(without_nul(value), "what an image is built of")

    @field_validator("dockerfile_path")
    @classmethod
    def _is_in_it(cls, value: str) -> str:
        parts = PurePosixPath(value).parts
        if value.startswith("/") or ".." in parts or not parts or "\\" in value or not value.isprintable():
            raise ValueError("must be a path below `path`, as in docker/Dockerfile")
        return "/".join(parts)


def _requirement(line: object, *, is_stored: bool) -> object:
    try:
        return parse_requirement(line).text
    except ValueError:
        if not is_stored:
            raise
        return line


def _with_options(document: dict[str, Any], *, is_stored: bool) -> dict[str, Any]:
    """An environment whose lines for pip have no options about indexes: fields say the same.

    Raises:
        ValueError: they name two indexes in place of the node's.
    """
    fields = dict(document)
    options: list[tuple[str, str]] = []
    if isinstance(fields.get("pip"), list | tuple):
        fields["pip"], options = split_options(fields["pip"])
    if isinstance(fields.get("conda_file"), dict):
        fields["conda_file"], more = without_options(fields["conda_file"])
        options += more
    for field, value in options:
        if field == "prereleases":
            fields[field] = True
        elif field == "index_url":
            if not is_stored and fields.get(field, "") not in ("", value):
                raise ValueError("it names two indexes (--index-url); make all but one --extra-index-url")
            fields[field] = value
        else:
            fields[field] = [*dict.fromkeys([*(fields.get(field) or ()), value])]
    return fields
