"""The failures of a job by kind, in the form of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parallelrun_core.answers.pictures import KindOfError, KindsOfErrors
from parallelrun_core.wire.masking import Mask

if TYPE_CHECKING:
    from parallelrun_core.tries.history import History


def kinds_of_errors(history: History) -> KindsOfErrors:
    """All kinds that are known, with the values of environment variables masked in them."""
    mask = Mask(history.record.spec)
    errors = history.errors
    items = [
        KindOfError(
            category=kind.failure.category,
            place=mask.printable(kind.place),
            message=mask.printable(kind.failure.message),
            traceback=mask.printable(kind.failure.traceback),
            has_several_messages=kind.has_several_messages,
            count=kind.count,
            mini_batches=kind.mini_batches,
            node=kind.first.node,
            process=kind.first.process,
            log=f"user/error/{kind.first.node}/{kind.first.process}.txt" if kind.first.process else "",
        )
        for kind in errors.most_frequent()
    ]
    return KindsOfErrors(items=items, count=errors.count, left_out=errors.left_out, read_share=history.read_share)
