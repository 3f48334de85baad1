"""What the proofs about the API's capacity find when a limit is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.api.conftest import Site
from tests.security import test_audit_log as audit_log
from tests.security import test_capacity as capacity
from tests.security.test_capacity import many_files, site, start
from tests.twins.sabotage import expect_failure

__all__ = ["many_files", "site", "start"]
pytestmark = pytest.mark.integration


def test_connections_that_may_say_nothing_are_found(start: capacity.Start) -> None:
    with expect_failure():
        capacity.check_silent_connections(start, without="http.connections")


@pytest.mark.slow
def test_heads_that_may_take_any_time_are_found(start: capacity.Start) -> None:
    with expect_failure():
        capacity.check_slow_heads(start, without="http.connections")


@pytest.mark.slow
def test_bodies_that_may_take_any_time_are_found(start: capacity.Start) -> None:
    with expect_failure():
        capacity.check_slow_bodies(start, without="http.connections")


def test_bodies_of_any_size_are_found(start: capacity.Start) -> None:
    with expect_failure():
        capacity.check_bodies(start, without="http.bounded_bodies")


def test_a_server_that_parses_what_it_has_refused_is_found(start: capacity.Start) -> None:
    with expect_failure():
        capacity.check_tiny_chunks(start, without="http.deaf")


@pytest.mark.slow
def test_a_page_of_logs_that_has_as_many_lines_as_they_have_is_found(start: capacity.Start, site: Site) -> None:
    with expect_failure():
        capacity.check_dear_logs(start, site, without="http.lines_of_logs")


def test_streams_without_a_limit_are_found(start: capacity.Start, site: Site) -> None:
    with expect_failure():
        capacity.check_streams(start, site, without="http.streams")


@pytest.mark.slow
def test_long_lists_without_a_limit_are_found(start: capacity.Start, site: Site, many_files: Path) -> None:
    with expect_failure():
        capacity.check_long_lists(start, site, many_files, without="http.lanes")


def test_changes_that_are_not_on_record_are_found(redis_url: str, redis: object, tmp_path: Path) -> None:
    with expect_failure():
        audit_log.check_record(redis_url, tmp_path, without="http.audit")
