"""Roles: what each service may do on Redis, as users of its access control lists (ACLs), which Redis 6.2 and any Valkey
know.

A service is the user that has its role's name. It may touch only the keys that it needs, call only the commands that it
uses, in its scripts as well, and run only these scripts: no text of its own. Nobody may administer the server through
any of them, and nobody without a name may do anything. Nothing is done here: `credentials.py` writes what it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha1, sha256
from typing import Final

from parallelrun_core.store import script_texts
from parallelrun_core.store.keys import (
    ACTIVE_JOBS,
    AGENTS,
    COMPUTES,
    KINDS,
    LAUNCHES,
    NODES,
    NODES_ALIVE,
    NODES_CHECK,
    NODES_DRAINING,
    NODES_STACKS,
    PREFIX,
    PROVISIONER,
    QUOTAS,
    USAGE,
    USAGE_WEEKS,
    JobKeys,
)


class Role(StrEnum):
    """A service, by the name that is also its user's."""

    API = "api"
    MASTER = "master"
    AGENT = "agent"
    CONCATENATOR = "concatenator"
    PROVISIONER = "provisioner"


@dataclass(frozen=True, slots=True)
class _Rights:
    keys: tuple[str, ...]
    commands: str
    scripts: tuple[str, ...]


_CONNECTING: Final = "auth hello info ping select time"
_TRANSACTIONS: Final = "discard exec multi unwatch watch"
_HASHES: Final = "hdel hexists hget hgetall hincrby hkeys hlen hmget hset hsetnx"
_RQ: Final = (
    "blmove client|info client|list client|setname del exists expire get hincrbyfloat lmove lpop lpos lpush lrange "
    "lrem persist rpush sadd scard set smembers srem xlen xrevrange zadd zcard zrange zrangebyscore zrem "
    "zremrangebyscore zscore"
)
_JOBS_AND_QUEUES: Final = (f"{PREFIX}*", "rq:*")
_ANY_JOB: Final = JobKeys("*")

_RIGHTS: Final[dict[Role, _Rights]] = {
    Role.API: _Rights(
        _JOBS_AND_QUEUES,
        f"{_CONNECTING} {_TRANSACTIONS} {_HASHES} {_RQ} llen pttl xadd xread",
        ("reopen", "reserve", "statuses", "transition", "wake"),
    ),
    Role.MASTER: _Rights(
        _JOBS_AND_QUEUES,
        f"{_CONNECTING} {_TRANSACTIONS} {_HASHES} {_RQ} llen pttl xadd xread xtrim",
        (
            "assign",
            "close",
            "drop",
            "expedite",
            "forget",
            "lead",
            "reap",
            "reopen",
            "republish",
            "retire",
            "speculate",
            "transition",
            "wake",
        ),
    ),
    # It runs next to the code of users: what it doesn't need is not there for them either.
    Role.AGENT: _Rights(
        (
            f"{AGENTS}*",
            ACTIVE_JOBS,
            NODES,
            NODES_ALIVE,
            NODES_CHECK,
            NODES_DRAINING,
            NODES_STACKS,
            QUOTAS,
            USAGE,
            USAGE_WEEKS,
        ),
        f"{_CONNECTING} exists get hdel hexists hget hgetall hincrby hmget hset llen lpop lpush sismember xadd zadd "
        "srem zcard zrange zrangebyscore zrank zrem zremrangebyscore",
        ("beat", "peek", "permits", "reassert", "turn", "usage"),
    ),
    Role.CONCATENATOR: _Rights(
        (_ANY_JOB.job, _ANY_JOB.concatenating, _ANY_JOB.outcomes, _ANY_JOB.events, "rq:*"),
        f"{_CONNECTING} {_TRANSACTIONS} {_HASHES} {_RQ} pttl xadd",
        (),
    ),
    Role.PROVISIONER: _Rights(
        (_ANY_JOB.job, ACTIVE_JOBS, NODES, NODES_ALIVE, NODES_DRAINING, PROVISIONER, KINDS, LAUNCHES, COMPUTES),
        f"{_CONNECTING} {_TRANSACTIONS} del get hdel hget hgetall hset pexpire sadd set smembers srem zrange",
        ("statuses",),
    ),
}


def rules(role: Role) -> list[str]:
    """Return what a role may do, as the words of an ACL."""
    rights = _RIGHTS[role]
    words = ["resetkeys", *(f"~{pattern}" for pattern in rights.keys), "resetchannels", "-@all"]
    words += [f"+{command}" for command in sorted(set(rights.commands.split()))]
    if rights.scripts:
        words += ["+script|load", *(f"+evalsha|{sha}" for sha in scripts_of(role).values())]
    return words


def acl_file(secrets: Mapping[Role, str]) -> str:
    """The content of an ACL file with a user for each role; it has only hashes of the secrets.

    Args:
        secrets: the password of each role: random, so that its hash tells nothing.
    """
    lines = [_nobody()]
    for role, secret in secrets.items():
        password = sha256(secret.encode()).hexdigest()
        lines.append(f"user {role} on resetpass #{password} {' '.join(rules(role))}")
    return "\n".join(lines) + "\n"


def scripts_of(role: Role) -> dict[str, str]:
    """The scripts of a role, each with its hash in this release."""
    return {name: _sha(name) for name in _RIGHTS[role].scripts}


def _nobody() -> str:
    """Return who gives no name and no password may do nothing."""
    return "user default off resetpass resetkeys resetchannels -@all"


def _sha(script: str) -> str:
    return sha1(script_texts.source(script).encode(), usedforsecurity=False).hexdigest()
