"""`parallelrun limit …`"""

from __future__ import annotations

from parallelrun.cli import completion
from parallelrun.cli.definitions import add_create, add_delete, add_list, add_show
from parallelrun.cli.server import Commands

limit = Commands(lambda client: client.limits, help="Limits on calls of services, for all jobs together.")


def _number(value: int | None) -> str:
    return "any" if value is None else f"{value:,}"


add_create(
    limit,
    "Define a limit, or define it anew, and print its name.",
    lambda defined, _: f"jobs that name it in rate_limits keep to it: rate_limits: [{defined.name}]",
)
add_list(
    limit,
    "List all limits.",
    [
        "name",
        ("REQUESTS/MIN", lambda each: _number(each.requests_per_minute)),
        ("TOKENS/MIN", lambda each: _number(each.tokens_per_minute)),
        ("IN FLIGHT", lambda each: _number(each.in_flight)),
    ],
)
add_show(
    limit,
    "Show one limit.",
    lambda definition: [
        ("name", definition.name),
        ("requests per minute", _number(definition.requests_per_minute)),
        ("tokens per minute", _number(definition.tokens_per_minute)),
        ("in flight", _number(definition.in_flight)),
    ],
    completion.limits,
)
add_delete(limit, "Forget a limit. Calls that wait for it are refused.", completion.limits)
