"""`parallelrun data …`, `model …`, `environment …`, `component …`"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from parallelrun.cli.output import FormatOption, OutputFormat, say, show_change, show_list, show_one
from parallelrun.cli.server import Commands, Target

if TYPE_CHECKING:
    from parallelrun.embedded.assets import OwnAssets
    from parallelrun.models import Asset
    from parallelrun.resources.assets import Assets

    AssetTarget: TypeAlias = Target[Assets | OwnAssets]
else:
    AssetTarget = object

_HELP: Final = {
    "data": "Registered folders, files and tables",
    "model": "Registered models",
    "environment": "Registered Python environments",
    "component": "Reusable pipeline steps",
}
_WHOSE: Final = "They are those of a server; without one, of `parallelrun run` on this machine."

Name = Annotated[str, typer.Option("--name", "-n", metavar="NAME", help="Name of the asset.", show_default=False)]
AnyVersion = Annotated[
    str, typer.Option("--version", "-v", metavar="VERSION", help="One of its versions.", show_default=False)
]
AnyLabel = Annotated[str, typer.Option("--label", "-l", metavar="LABEL", help="One of its labels.", show_default=False)]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="Change a field. Can be repeated.")
]
Archived = Annotated[bool, typer.Option("--include-archived", help="Also what is archived.")]


def asset_kinds() -> list[str]:
    """Return the kinds of assets that people make, the usual ones first.

    There is a module of the core for each; none of them is loaded here.
    """
    core = find_spec("parallelrun_core")
    folders = core.submodule_search_locations if core is not None else None
    kinds_folders = [str(Path(folder, "assets", "kinds")) for folder in folders or ()]
    kinds = {module.name for module in iter_modules(kinds_folders)} - {"code"}
    return [*(kind for kind in _HELP if kind in kinds), *sorted(kinds - _HELP.keys())]


def commands_for(kind: str) -> Commands:
    """Return the group of commands about the assets of one kind."""

    def own() -> OwnAssets:
        from parallelrun.embedded.assets import OwnAssets

        return OwnAssets(kind)

    help_text = f"{_HELP.get(kind, f'Registered assets of type {kind}')}. {_WHOSE}"
    group = Commands(lambda client: client.assets(kind), own, help=help_text)
    for name, command in _COMMANDS:
        group.command(name)(command)
    return group


def create(
    target: AssetTarget,
    *,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Its document, as YAML or JSON.", show_default=False)
    ] = None,
    name: Name = "",
    version: AnyVersion = "",
    path: Annotated[str, typer.Option("--path", metavar="PATH", help="Where it is.", show_default=False)] = "",
    kind_of: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="As in a document, such as mltable.", show_default=False)
    ] = "",
    assignments: Assignments = None,
    no_upload: Annotated[
        bool, typer.Option("--no-upload", help="Don't copy local files: everybody reads them where they are.")
    ] = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Make a version, and print what a job's document calls it. Without a version, it is the next number."""
    if file is None and not (name and (path or assignments)):
        raise typer.BadParameter("give the document, or for data and models --name and --path", param_hint="--file")
    changes = _changes(assignments or (), name=name, version=version, path=_here(path), type=kind_of)
    created = target.resources.create(file or {}, changes=changes, upload=not no_upload)
    show_change(created, form, name=created.id)
    path = f"{created.path}, " if created.path and created.type != "component" else ""
    say(f"{path}{target.location}")


def list_assets(
    target: AssetTarget, *, name: Name = "", form: FormatOption = OutputFormat.TABLE, archived: Archived = False
) -> None:
    """List all of them, or the versions of one. Of all, each is shown by its latest version."""
    assets = target.resources
    show_list(
        assets.versions(name, archived=archived) if name else assets.list(archived=archived),
        form,
        name=lambda each: each.id,
        columns=[
            "name",
            "version",
            "created",
            ("TYPE", lambda each: each.content.get("type", "")),
            "path",
            *([("ARCHIVED", lambda each: "yes" if each.archived else "")] if archived else []),
        ],
    )


def show(
    target: AssetTarget,
    *,
    name: Name,
    version: AnyVersion = "",
    label: AnyLabel = "",
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show one version, by default the latest."""
    asset = target.resources.get(name, version, label=label)
    show_one(asset, form, name=asset.id, lines=list(_lines(asset)))


def set_label(target: AssetTarget, *, name: Name, label: AnyLabel, version: AnyVersion = "") -> None:
    """Let a label stand for a version. Without a version, the label is forgotten."""
    if version:
        target.resources.set_label(name, label, version)
    else:
        target.resources.remove_label(name, label)


def archive(target: AssetTarget, *, name: Name, version: AnyVersion = "") -> None:
    """Hide a version, or all of it, from lists. Jobs that name it find it all the same."""
    target.resources.archive(name, version)


def restore(target: AssetTarget, *, name: Name, version: AnyVersion = "") -> None:
    """Show again what was archived."""
    target.resources.restore(name, version)


_COMMANDS: Final[tuple[tuple[str, Callable[..., None]], ...]] = (
    ("create", create), ("list", list_assets), ("show", show), ("label", set_label), ("archive", archive),
    ("restore", restore),
)  # fmt: skip


def _changes(assignments: list[str] | tuple[()], **options: str) -> dict[str, Any]:
    """The fields that a command line sets: whole ones, at the top of the document."""
    from parallelrun.errors import InvalidInput
    from parallelrun_core.spec import set_field

    changes: dict[str, Any] = {}
    for assignment in assignments:
        if "." in assignment.partition("=")[0]:
            raise InvalidInput.at("--set", f"{assignment!r}: only whole fields can be set", "as in --set version=2")
        set_field(changes, assignment)
    return changes | {field: value for field, value in options.items() if value}


def _here(path: str) -> str:
    """A path of the command line, which starts from the current folder."""
    from parallelrun_core.storage.supported import absolute_path

    return absolute_path(path, Path.cwd())


def _lines(asset: Asset) -> Iterator[tuple[str, object]]:
    yield "name", asset.name
    yield "version", asset.version
    yield "created", asset.created
    yield "description", asset.description
    for field, values in (("tags", asset.tags), ("properties", asset.properties)):
        yield field, ", ".join(f"{key}={value}" for key, value in values.items())
    yield "archived", "yes" if asset.archived else ""
    for field, value in asset.content.items():
        if isinstance(value, dict | list):
            import yaml

            yield field, yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip()
        else:
            yield field, value
