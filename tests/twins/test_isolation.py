"""What the proofs of isolation find when one of its rules is broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parallelrun_agent.policy.isolation import Isolation
from parallelrun_core.folder.decided import Decided
from parallelrun_core.wire.outcome import Outcome
from parallelrun_worker.outputs import Outputs
from parallelrun_worker.rows.kept_rows import ItemRange, Patch
from parallelrun_worker.rows.returned import Rendered
from tests.twins.sabotage import always, expect_failure, nothing, replaced
from tests.unit.agent import test_isolation as isolation
from tests.unit.core import test_decisions as decisions
from tests.unit.core.factories import failed
from tests.unit.worker import test_apart as apart
from tests.unit.worker import test_kept_rows as kept_rows
from tests.unit.worker import test_outputs as outputs


def test_isolation_that_forgets_which_items_are_lost_is_found() -> None:
    with replaced("parallelrun_agent.policy.isolation:_missing", always([])), expect_failure():
        isolation.test_isolation_loses_the_guilty_items_alone()


def test_isolation_that_counts_rows_of_a_worker_that_has_died_is_found() -> None:
    def keeps_them(self: Isolation, kind: int, other_rows: bytes = b"") -> bytes:
        return b'{"kind":%d,"failed":[[4,2]],"calls":62}\n' % kind

    with replaced("parallelrun_agent.policy.isolation:Isolation.asked", keeps_them), expect_failure():
        isolation.test_isolation_goes_on_after_a_death_without_the_rows_of_the_dead()


def test_isolation_that_takes_every_half_for_good_is_found() -> None:
    with replaced("tests.unit.worker.test_apart:Script.call", always([1])), expect_failure():
        apart.test_apart_needs_about_two_calls_for_each_halving_of_one_guilty_item()


def test_isolation_that_calls_run_with_items_that_are_not_there_is_found() -> None:
    with replaced("parallelrun_worker.rows.kept_rows:ItemRange.has", always(False)), expect_failure():
        proof: Any = apart.test_apart_calls_no_part_with_an_item_that_is_known_to_fail
        proof.hypothesis.inner_test(16, {5})  # of many examples, it may report several failures as one group


def test_items_that_are_tried_again_and_cost_rows_are_found(tmp_path: Path) -> None:
    def as_it_is(_: Decided, outcome: Outcome) -> Outcome:
        return outcome

    with replaced("parallelrun_core.folder.decided:Decided.outcome_of_retry", as_it_is), expect_failure():
        decisions.test_items_that_fail_again_cost_no_row(tmp_path, failed(1, items=5, generation=1, token="second"))


def test_rows_of_retried_items_at_the_end_are_found() -> None:
    def at_the_end(self: Patch, rendered: list[tuple[ItemRange, Rendered]], _: object) -> list[tuple[bytes, bytes]]:
        return [(b"", line) for line in self.other_rows.lines] + [(b"", each.data) for _, each in rendered]

    with replaced("parallelrun_worker.rows.kept_rows:Patch._in_order", at_the_end), expect_failure():
        kept_rows.test_kept_rows_have_the_new_ones_at_their_places()


def test_files_of_items_that_fail_alone_are_found(tmp_path: Path) -> None:
    folders = [tmp_path / "live" / str(number) for number in range(2)]
    for folder in folders:
        folder.mkdir(parents=True)
    written = Outputs([str(folder) for folder in folders], str(tmp_path / "aside"))
    with replaced("parallelrun_worker.outputs:Outputs.discard_part", nothing), expect_failure():
        outputs.test_of_parts_only_what_went_well_is_kept(tmp_path, folders, written)
