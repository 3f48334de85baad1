"""Warm-up: what each leader would make anew is made once, before they are forked.

How to read a kind of record is worked out when the first one is read, and a pattern compiled when it is first used. For
a job of one command, that was a tenth of all that its leader did.
"""

from __future__ import annotations

from typing import Final

import msgspec

from parallelrun_core.folder.manifest import Closing
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.folder.term_log import Header
from parallelrun_core.pipelines.records import StepRecord
from parallelrun_core.spec import JobSpec
from parallelrun_core.spec.shell_words import with_values
from parallelrun_core.storage.path_rule import Places
from parallelrun_core.store.nodes import NodeInfo
from parallelrun_core.wire.progress import Progress

_RECORDS: Final = (Closing, Header, JobRecord, JobResult, NodeInfo, Places, Progress, StepRecord)


def warm_up() -> None:
    """Make it, in the process from which leaders are forked."""
    for record in _RECORDS:
        msgspec.json.Decoder(record)
    JobSpec.model_rebuild()
    with_values("true", lambda kind, name: "")
