"""The code of a pipeline's steps in one zip, in which each step's `code` names a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parallelrun_core.code.source import CodeSource, source_of
from parallelrun_core.errors import UnsafePath
from parallelrun_core.names.assets import INCLUDES, stored_code
from parallelrun_core.spec.pipeline_steps import with_steps
from parallelrun_core.untrusted.paths import relative_parts


def with_code_in_zip(document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, CodeSource]]:
    """The fields of a pipeline whose steps name folders of a zip, and the code of this machine that each is.

    Steps with the same code name the same folder; those without code still name none.
    """
    names: dict[CodeSource, str] = {}

    def named(_: tuple[str, ...], step: dict[str, Any]) -> dict[str, Any]:
        code, includes = step["job"].get("code", ""), step["job"].get(INCLUDES, ())
        if not (code or includes) or stored_code(code):
            return step
        source = source_of(code, includes)
        name = names.get(source) or names.setdefault(source, _new_name(code, set(names.values())))
        return {**step, "job": {**step["job"], "code": name, **({INCLUDES: []} if includes else {})}}

    changed = with_steps(document, named)
    return changed, {name: source for source, name in names.items()}


def _new_name(code: str, used_names: set[str]) -> str:
    """A name for a folder that says what it is, whatever letter case means where the zip is unpacked."""
    try:
        (name,) = relative_parts(Path(code or "code").resolve().name)
    except (UnsafePath, ValueError):
        name = "code"
    folded = {each.casefold() for each in used_names}
    numbered = (f"{name}-{number}" for number in range(2, len(used_names) + 3))
    return name if name.casefold() not in folded else next(each for each in numbered if each.casefold() not in folded)
