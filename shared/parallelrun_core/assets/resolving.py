"""Finds what a name in a document stands for: what the site file says, else what a catalog or a server knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from parallelrun_core.errors import InvalidInput, NotFound
from parallelrun_core.names.assets import (
    Asset,
    Names,
    Reference,
    UnknownAsset,
    code_called,
    job_output_in,
    reference_of,
    stored_code,
)

if TYPE_CHECKING:
    from parallelrun_core.assets.catalog import Catalog
    from parallelrun_core.assets.inlining import KeepCode
    from parallelrun_core.assets.site import Site
    from parallelrun_core.code.source import CodeSource

_MAP_IT: Final = "say in the site file what stands for it here (docs/assets.md)"


@dataclass(eq=False)
class Resolver:
    """The names that a cluster, or a user, knows. As safe to share between threads as what it is given.

    Args:
        lookup: the asset of this type that has a name; raises UnknownAsset.
        site: what the site file says now; it may raise InvalidInput.
        keep_code: stores a folder that a component or an environment in the site file names; returns its name.
        code_at: what a job's `code` is for stored code: a name for whoever accepts the job, or a folder.
        output_of: the path or the URL of an output, by the id of its job and its name; raises NotFound. None: no jobs
            are known.
        own_site: what the site file says of images, if that is all of `site` that can be had without asking others.
    """

    lookup: Callable[[str, Reference], Asset]
    site: Callable[[], Site]
    keep_code: KeepCode
    code_at: Callable[[str], str] = code_called
    output_of: Callable[[str, str], str] | None = None
    own_site: Callable[[], Site] | None = None

    def asset(self, kind: str, text: str) -> Asset:
        """The asset of this type that a text names.

        Raises:
            UnknownAsset, UnknownVersion: there is none; says what there is.
            InvalidInput: the text is no name, or the site file is wrong.
            ConnectionFailed, OSError, CorruptLog: nobody can be asked.
        """
        reference = reference_of(text)
        if reference is None and kind == "environment":
            return self._of_image(text)
        if reference is None or reference.type not in ("", kind):
            raise InvalidInput.at("", f"{text!r} is not the name of a {kind}", "as in azureml:NAME:VERSION")
        stand_in = self.site().stand_in(kind, reference)
        if stand_in is not None:
            return self._standing_in(kind, reference, stand_in)
        return self.lookup(kind, reference)

    def _of_image(self, image: str) -> Asset:
        """Return what stands for an environment with this image. Raises UnknownAsset: nothing does."""
        stand_in = (self.own_site or self.site)().stand_in_for_image(image)
        if stand_in is None:
            raise UnknownAsset.called(image, "no environment stands for this image", _MAP_IT)
        return self._standing_in("environment", Reference(image, "environment", "image"), stand_in)

    def place(self, text: str, *, is_output: bool = False) -> str:
        """The location that stands for another one here; mostly the same. Raises InvalidInput if the site file is
        wrong."""
        if snapshot := stored_code(text):
            return self.code_at(snapshot)
        if self.output_of is not None and (job_output := job_output_in(text)) is not None:
            return job_output.within(self.output_of(job_output.job, job_output.output))
        return self.site().place(text) if ":" in text else text

    def _standing_in(self, kind: str, reference: Reference, value: Any) -> Asset:
        """The asset that the site file names, or one that it describes by itself."""
        from parallelrun_core.assets.document import read_asset, read_asset_file
        from parallelrun_core.assets.kinds import model_of

        if isinstance(value, str) and (local := reference_of(value)) is not None:
            return self.lookup(kind, local)
        content: dict[str, Any]
        if model_of(kind).has_files:
            content = {"path": value}
        elif isinstance(value, dict):
            content = read_asset(
                kind, value, folder=self.site().folder, keep_code=self.keep_code, name=reference.name
            ).content
        else:
            content = read_asset_file(kind, Path(value), keep_code=self.keep_code, name=reference.name).content
        return Asset(type=kind, name=reference.name, version=reference.version or reference.label, content=content)


class Lazily:
    """Names that nobody looks up unless a document has one: importing what that takes costs more than reading most
    documents."""

    def __init__(self, make: Callable[[], Names]) -> None:
        self._make = make
        self._made: Names | None = None

    def asset(self, kind: str, text: str) -> Asset:
        return self._names().asset(kind, text)

    def place(self, text: str, *, is_output: bool = False) -> str:
        return self._names().place(text, is_output=is_output) if ":" in text else text

    def _names(self) -> Names:
        if self._made is None:
            self._made = self._make()
        return self._made


def names_in(
    catalog: Catalog,
    site: Callable[[], Site],
    *,
    code_at: Callable[[str], str] = code_called,
    check_seen: Callable[[str], None] = lambda _: None,
) -> Resolver:
    """The names that a catalog knows, and the outputs of jobs below its root. Safe to share between threads.

    Args:
        check_seen: raises NotFound for the id of a job that whoever names it may not see.
    """

    def known(kind: str, reference: Reference) -> Asset:
        if reference.registry:
            message = f"the registry {reference.registry!r} is one of Azure ML's, and can't be asked"
            raise UnknownAsset.called(reference.text, message, _MAP_IT)
        if reference.version:
            return catalog.get(kind, reference.name, reference.version)
        return catalog.labelled(kind, reference.name, reference.label)

    def keep(source: Path | CodeSource, dockerfile: str) -> str:
        from parallelrun_core.assets.contents import keep_named

        return keep_named(catalog.root, source, dockerfile)

    def output_of(job_id: str, name: str) -> str:
        from parallelrun_core.folder.job_folder import JobFolder
        from parallelrun_core.ids import is_job_id
        from parallelrun_core.pipelines.outputs import output_path

        if not is_job_id(job_id):
            raise NotFound(f"There is no job {job_id[:80]!r}.")
        check_seen(job_id)
        return output_path(JobFolder(catalog.root, job_id), name)

    return Resolver(known, site, keep_code=keep, code_at=code_at, output_of=output_of)
