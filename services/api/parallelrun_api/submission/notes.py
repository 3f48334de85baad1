"""The notes on a document that are true on this server: some depend on the computes that it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from parallelrun_core.azure.findings import Note
from parallelrun_core.computes import images, names
from parallelrun_core.computes.images import has_image
from parallelrun_core.computes.selection import computes_in


def true_notes(
    notes: Iterable[Note], submitted: Mapping[str, Any], recorded: Mapping[str, Any], *, has_computes: bool
) -> list[str]:
    """The notes that are true of a job on this server, with those that its reader could not make.

    Args:
        notes: of the reader.
        submitted: the spec as it came.
        recorded: the same spec as it is recorded, with the compute that was selected.
        has_computes: the server has any.
    """
    untrue = {names.NOTE} if has_computes else set()
    untrue |= {images.NOTE, images.BUILD_NOTE} if has_image(recorded) else set()
    true = [note for note in notes if note.message not in untrue]
    if not has_computes and computes_in(submitted) and all(note.message != names.NOTE for note in true):
        true.append(Note("/compute", names.NOTE))
    return [str(note) for note in true]
