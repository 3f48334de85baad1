"""What the errors of a server become: those that pass by themselves are told apart from bugs, in one way for all."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from parallelrun_core.store.connection import CONNECTION_ERRORS, RedisError, ServerUnable, connect, connect_async

URL = "unix:///nowhere.sock"
UNABLE = [
    "BUSY Redis is busy running a script.",
    "CLUSTERDOWN The cluster is down",
    "LOADING Redis is loading the dataset in memory",
    "MASTERDOWN Link with MASTER is down",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    "NOREPLICAS Not enough good replicas to write.",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "READONLY You can't write against a read only replica.",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "UNBLOCKED force unblock from blocking operation",
    "ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed",
]
BUGS = [
    ("ERR unknown command 'OOM'", redis.ResponseError),
    ("NOSCRIPT No matching script.", redis.exceptions.NoScriptError),
    ("NOPERM this user has no permissions", redis.exceptions.NoPermissionError),
]


@pytest.fixture(params=["blocking", "async"])
def parser(request: pytest.FixtureRequest) -> Any:
    """What parses the answers of all connections of a client."""
    client: Any = connect(URL) if request.param == "blocking" else connect_async(URL, timeout_s=1.0, connections=1)
    return client.connection_pool.connection_kwargs["parser_class"]


@pytest.mark.parametrize("answer", UNABLE, ids=lambda answer: answer.split()[0])
def test_a_server_that_can_do_nothing_now_counts_as_away(parser: Any, answer: str) -> None:
    error = parser.parse_error(answer)
    assert type(error) is ServerUnable
    assert isinstance(error, CONNECTION_ERRORS)


@pytest.mark.parametrize("answer,kind", BUGS)
def test_any_other_error_stays_what_it_is(parser: Any, answer: str, kind: type[Exception]) -> None:
    error = parser.parse_error(answer)
    assert type(error) is kind
    assert isinstance(error, RedisError)
    assert not isinstance(error, CONNECTION_ERRORS)
