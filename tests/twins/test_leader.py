"""What the proofs about leader, output and submission find when a rule is broken."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from parallelrun_api.submission import code as submitted_code
from parallelrun_api.submission.key_claims import KeyClaims
from parallelrun_concatenator.output import Leaving
from parallelrun_concatenator.parts import PartFiles, Sink
from parallelrun_concatenator.segments import Segment, SegmentTable
from parallelrun_core.documents import schema
from parallelrun_core.errors import CorruptLog
from parallelrun_core.folder import decisions, takeover, term_log
from parallelrun_core.folder.decisions import DecisionWriter, read_decisions
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.storage.local import new_file
from parallelrun_core.store import errors
from parallelrun_core.store.connection import connect
from parallelrun_core.wire.message import Piece
from parallelrun_core.wire.outcome import Outcome
from parallelrun_master.ledger.journals import _candidates
from parallelrun_master.ledger.ledger import Ledger
from parallelrun_master.ledger.retry_log import RetryLog
from parallelrun_master.planning.input_cuts import KnownInput, known_in
from parallelrun_master.planning.shuffling import Shuffle
from parallelrun_master.planning.table_cutting import TableCutter
from parallelrun_master.policy import completion as completion_module
from parallelrun_master.publishing.handover import Handover
from parallelrun_master.reports.tries import TryReport
from tests.golden.opened import opened
from tests.integration.api import test_accept as accept
from tests.integration.api.conftest import Site
from tests.twins.sabotage import always, expect_failure, nothing, replaced, without
from tests.unit.concatenator import test_formats as formats
from tests.unit.concatenator import test_merge as merge
from tests.unit.concatenator import test_output as output
from tests.unit.core import test_decisions as log
from tests.unit.core import test_fitness as fitness
from tests.unit.core import test_golden as golden
from tests.unit.core import test_paths as paths
from tests.unit.core import test_store_errors as store_errors
from tests.unit.core import test_takeover as takeovers
from tests.unit.core import test_term_log as terms
from tests.unit.master import test_completion as completion
from tests.unit.master import test_input_cuts as inputs
from tests.unit.master import test_intake as intake
from tests.unit.master import test_ledger as ledger
from tests.unit.master import test_publisher as publishing
from tests.unit.master import test_shuffling as shuffles
from tests.unit.master import test_try_report as reports
from tests.unit.tables import test_round_trips as round_trips

if TYPE_CHECKING:
    from redis import Redis

PIECES = TableCutter.pieces
BEGIN_SHUFFLE = Shuffle.__init__
KNOWN_IN = known_in
TAKE = Handover.take

# The leader


def test_half_a_shuffle_that_is_taken_as_whole_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rename: the rows are grouped where they will be read."""

    def in_place(self: Shuffle, *args: Any) -> None:
        BEGIN_SHUFFLE(self, *args)
        self._own = self._target

    monkeypatch.setattr(Shuffle, "__init__", in_place)
    with expect_failure():
        shuffles.test_only_a_whole_shuffle_counts(tmp_path, monkeypatch)


def test_forgetting_before_the_sync_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DecisionWriter, "sync", nothing)
    with expect_failure():
        ledger.test_redis_forgets_only_what_is_durable(tmp_path)


def test_a_successor_that_builds_on_what_was_never_synced_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_log, "sync_file", nothing)
    with expect_failure():
        terms.test_what_a_leader_builds_on_is_durable_though_its_predecessor_was_killed(tmp_path, monkeypatch)


def test_a_leader_that_does_not_read_what_was_decided_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "read_outcomes", always(()))
    with expect_failure():
        ledger.test_the_next_leader_counts_the_same(tmp_path)


def test_a_leader_that_does_not_read_which_tries_have_failed_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RetryLog, "earlier", always(()))
    with expect_failure():
        ledger.test_the_next_leader_counts_the_same_errors_though_redis_tells_some_again(tmp_path)


def test_failed_tries_that_are_taken_from_journals_are_found(tmp_path: Path) -> None:
    with replaced("parallelrun_master.leader.intake:finished", _candidates), expect_failure():
        intake.test_a_failed_try_in_a_journal_is_no_decision_while_its_successor_may_report(tmp_path)


def test_failures_of_init_that_count_again_are_found(tmp_path: Path) -> None:
    with replaced("parallelrun_master.ledger.ledger:Ledger._report_phase", always(True)), expect_failure():
        intake.test_a_failure_of_init_counts_once_also_after_redis_came_back(tmp_path)


def test_a_leader_that_goes_on_reading_where_it_was_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "start_over", nothing)
    with expect_failure():
        ledger.test_what_comes_in_after_redis_lost_its_last_moments_is_read(tmp_path)


def test_books_that_are_synced_only_when_redis_has_something_to_forget_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync_and_trim = Ledger.sync_and_trim

    def only_to_trim(books: Ledger, now: float, *, at_once: bool = False) -> None:
        if books.can_trim:
            sync_and_trim(books, now, at_once=at_once)

    monkeypatch.setattr(Ledger, "sync_and_trim", only_to_trim)
    with expect_failure():
        ledger.test_what_was_recorded_is_durable_whatever_redis_has_forgotten_by_then(tmp_path, False)


def test_a_handover_that_goes_on_where_it_was_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though Redis was set back."""
    monkeypatch.setattr(Handover, "take", lambda handover, _, *how_much: TAKE(handover, handover._first, *how_much))
    with expect_failure():
        inner(publishing.test_all_is_published_once_and_in_order_whatever_happens)(
            steps=[("schedule", 30), ("publish", 0), ("set back", 1)], before=0, max_bytes=1 << 20, at_once=2
        )


def test_a_job_that_is_finalized_whatever_failed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion_module, "over_threshold", always(None))
    with expect_failure():
        completion.test_a_job_of_which_too_much_failed_is_never_finalized()


def test_without_the_rule_that_the_first_decision_wins_a_success_is_lost() -> None:
    with without("commit.fence"), expect_failure():
        log.test_a_success_stays_whatever_comes_later()


# What a job takes over


def test_a_take_over_of_what_has_failed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_as_done(folder: Path) -> Iterator[Outcome]:
        return (replace(found, status="done") for found in read_decisions(folder))

    monkeypatch.setattr(takeover, "read_decisions", read_as_done)
    with expect_failure():
        takeovers.test_what_is_done_is_taken_over_and_nothing_else(tmp_path)


def test_a_take_over_of_what_has_an_item_that_failed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_as_whole(folder: Path) -> Iterator[Outcome]:
        return (replace(each, lost=[]) for each in read_decisions(folder))

    monkeypatch.setattr(takeover, "read_decisions", read_as_whole)
    with expect_failure():
        takeovers.test_what_has_an_item_that_failed_is_not_taken_over_unless_it_was_retried(tmp_path)


def test_a_take_over_into_a_job_that_is_there_already_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def create_with(folder: JobFolder, record: JobRecord, take_over: Any) -> None:
        folder.create(record)
        folder.layout.make_folders()
        take_over(folder.path)

    monkeypatch.setattr(JobFolder, "create_with", create_with)
    with expect_failure():
        takeovers.test_a_process_that_dies_while_it_takes_over_leaves_no_job(tmp_path)


# The output

small_blocks = output.small_blocks


@pytest.fixture
def job(tmp_path: Path) -> merge.Job:
    return merge.Job(tmp_path)


def test_an_output_that_is_written_in_place_is_found(job: merge.Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_file, "unfinished_prefix", always(job.target.name))
    monkeypatch.setattr("secrets.token_hex", always(""))
    monkeypatch.setattr(new_file, "publish", nothing)
    with expect_failure():
        merge.test_the_target_appears_only_whole(job, monkeypatch)


def test_an_output_of_damaged_rows_is_found(job: merge.Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def copy(parts: PartFiles, segments: Iterable[Segment], output: Sink) -> None:
        for segment in segments:
            output.write(parts.begin(segment, segment.length))

    monkeypatch.setattr(PartFiles, "copy", copy)
    with expect_failure():
        merge.test_rows_that_are_not_what_was_committed_are_told_and_nothing_is_published(job, merge.spoil_byte)


def test_an_output_whose_blocks_are_filled_before_they_are_written_is_found(
    tmp_path: Path, small_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Leaving, "wait", lambda leaving: leaving.block)
    with expect_failure():
        output.test_a_block_is_not_filled_again_before_it_is_written(tmp_path, small_blocks, monkeypatch)


def test_rows_that_were_decided_twice_are_found(job: merge.Job) -> None:
    with without("commit.fence"), pytest.raises(CorruptLog, match="mini-batch 2 has been decided twice"):
        merge.test_failed_mini_batches_and_second_decisions_have_no_rows(job)


def test_an_output_with_a_header_that_is_out_of_order_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_order = SegmentTable.in_order
    monkeypatch.setattr(SegmentTable, "in_order", lambda table: reversed(list(in_order(table))))
    with expect_failure():
        formats.test_the_header_is_there_once(tmp_path)


def test_a_report_that_its_heir_does_not_read_is_found(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TryReport, "_read_end", lambda report, _: setattr(report, "_known", set()))
    with expect_failure():
        reports.test_whoever_takes_over_adds_what_is_missing_and_repeats_nothing(tmp_path_factory)


# Submissions


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site.made(tmp_path)


@pytest.mark.integration
def test_an_answer_before_the_code_is_on_the_disk_is_found(
    tmp_path: Path, site: Site, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitted_code, "sync_tree", nothing)
    with expect_failure():
        accept.test_what_is_accepted_is_on_the_disk_with_its_code(tmp_path, site, redis, monkeypatch)


@pytest.mark.integration
def test_a_key_that_is_not_kept_is_found(
    tmp_path: Path, site: Site, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeyClaims, "job_of", always(None))
    with expect_failure():
        accept.test_the_same_key_makes_one_job_whoever_asks(tmp_path, site, redis)


def test_links_that_are_followed_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "O_NOFOLLOW", 0)
    with expect_failure():
        paths.test_no_link_is_followed_at_any_level(paths.make_tree(tmp_path), "a/x", False)


def test_paths_that_lead_upwards_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "relative_parts", lambda text: tuple(text.split("/")))
    with expect_failure():
        paths.test_what_could_leave_or_confuse_is_refused("../secret", tmp_path)


def test_a_redis_that_cannot_write_and_is_taken_for_a_bug_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    never: Any = SimpleNamespace(search=always(None))
    monkeypatch.setattr(errors, "_UNABLE", never)
    with connect(store_errors.URL) as client, expect_failure():
        parser = client.connection_pool.connection_kwargs["parser_class"]
        store_errors.test_a_server_that_can_do_nothing_now_counts_as_away(parser, "MISCONF can't write")


def test_trust_in_a_redis_that_evicts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitness, "unfit", always([]))
    with expect_failure():
        fitness.test_which_redis_is_fit({"maxmemory_policy": "allkeys-lru"}, 1)


def test_a_newer_folder_that_is_read_as_if_it_were_ours_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "SCHEMA", 2)
    folder = opened("v1", tmp_path)
    with expect_failure():
        golden.test_what_a_newer_release_has_written_is_refused_with_words(
            folder,
            golden.newer_json("result.json"),
            lambda _: schema.decode(b'{"schema": 2}', schema._Versioned, tmp_path),
        )


# Tables


def inner(test: Any) -> Any:
    """A test with examples of its own, to be called with one of ours."""
    return test.hypothesis.inner_test


def test_a_leader_that_cuts_from_the_beginning_again_is_found(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "known_in", lambda _: KnownInput())
    with expect_failure():
        inner(inputs.test_leaders_that_die_leave_no_gap_and_nothing_twice)(
            tmp_path_factory, files=3, size=3, deaths=[1]
        )


def test_a_leader_that_takes_one_input_for_another_of_the_same_table_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_any_input(folder: Path) -> KnownInput:
        known = KNOWN_IN(folder)
        known.pieces.update({(1 - number, path, start): 1 for number, path, start in known.pieces})
        return known

    monkeypatch.setattr(inputs, "known_in", of_any_input)
    with expect_failure():
        inputs.test_two_inputs_of_the_same_table_are_both_there_whenever_a_leader_dies(tmp_path, inputs.FEW, inputs.ALL)


def test_a_gap_between_two_cuts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_but_the_second(cutter: TableCutter, paths: Iterator[bytes]) -> Iterator[Piece | None]:
        found = [piece for piece in PIECES(cutter, paths) if piece is not None]
        yield from [*found[:1], *found[2:]]

    monkeypatch.setattr(TableCutter, "pieces", all_but_the_second)
    with expect_failure():
        inner(round_trips.test_whatever_text_is_cut_the_same_rows_come_out)(
            content="a\nb\nc\nd\n", multi_line=False, size=3, header=False, block=64
        )
