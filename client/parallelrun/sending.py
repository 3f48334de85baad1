"""What is sent of a job: its spec, and its code in a zip."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from parallelrun_core.assets.names import stored_code

if TYPE_CHECKING:
    from parallelrun_core.spec import JobSpec, PipelineSpec

UPLOAD_TIMEOUT_S: Final = 300.0


def without_its_code(
    spec: JobSpec | PipelineSpec, *, upload_code: bool = True
) -> tuple[dict[str, Any], dict[str, Path]]:
    """The document of a job or a pipeline that is sent with a zip, and the folders that are in the zip, by name.

    Args:
        upload_code: whether there is one; otherwise the server reads the code at the same paths.
    """
    document = spec.model_dump(mode="json", exclude_unset=True)
    if upload_code and document.get("type") == "pipeline":
        from parallelrun.code_of_steps import with_code_in_zip

        return with_code_in_zip(document)
    if upload_code and (code := document.get("code")) and not stored_code(code):
        return {**document, "code": ""}, {"": Path(code)}
    return document, {}


@contextmanager
def body_of(document: Mapping[str, Any], folders: Mapping[str, Path]) -> Iterator[Callable[[], dict[str, Any]]]:
    """What makes the body of a request, as often as it is sent."""
    if not folders:
        yield lambda: {"json": document}
        return
    from parallelrun.package_code import zip_folders

    with zip_folders(folders) as archive:

        def body() -> dict[str, Any]:
            archive.seek(0)
            return {
                "data": {"spec": json.dumps(document)},
                "files": {"code": ("code.zip", archive, "application/zip")},
            }

        yield body
