"""A profile as JSON, beside the file for `pstats`.

That one is in the format of `marshal`, which no service may read: whoever can write such a file can crash its reader.
So the process in which it was made converts it, over which the script has all power anyway.
"""

from __future__ import annotations

import json
import os
from typing import Any

MOST_FUNCTIONS = 1000
"""Those with the most cumulative time: all others of a process together take next to none."""
MOST_CALLS = 4000
_MAX_TEXT = 300
_OF_CPROFILE = "of '_lsprof.Profiler' objects>"
_OF_PROFILE = ("profile", 0)
"""File and line of what `profile` puts in the places of itself and of who calls it."""


def profile_data(stats: dict[Any, Any], code: str) -> bytes:
    """JSON: `{schema, total_s, left_out, functions, calls}`.

    `functions` are lists of file, line, name, calls, calls that were no recursion, own and cumulative seconds; `calls`
    are lists of two places in `functions`, caller and callee, then how often, and the seconds of the callee for it: its
    own and cumulative.

    Args:
        stats: as a `pstats.Stats` has them.
        code: the folder of the job's code. Files in it are relative to it.
    """
    named = {key: entry for key, entry in stats.items() if key[:2] != _OF_PROFILE and not key[2].endswith(_OF_CPROFILE)}
    top_functions = sorted(named, key=lambda key: -named[key][3])[:MOST_FUNCTIONS]
    place = {key: number for number, key in enumerate(top_functions)}
    functions = [
        [*_shown(key, code), calls, plain, round(own_s, 6), round(cumulative_s, 6)]
        for key in top_functions
        for plain, calls, own_s, cumulative_s, _ in (named[key],)
    ]
    edges = [
        (cumulative_s, [place[caller], place[callee], calls, round(own_s, 6), round(cumulative_s, 6)])
        for callee in top_functions
        for caller, calls, own_s, cumulative_s in _callers(named[callee])
        if caller in place
    ]
    edges.sort(key=lambda edge: -edge[0])
    data = {
        "schema": 1,
        "total_s": round(sum(entry[2] for entry in named.values()), 6),
        "left_out": len(named) - len(top_functions),
        "functions": functions,
        "calls": [edge for _, edge in edges[:MOST_CALLS]],
    }
    return json.dumps(data, separators=(",", ":")).encode()


def _callers(entry: Any) -> list[Any]:
    """Return who has called a function: caller, how often, own and cumulative seconds."""
    _, all_calls, all_own_s, all_cumulative_s, callers = entry
    rows = []
    for caller, measured in callers.items():
        if isinstance(measured, tuple):  # of cProfile
            calls, _, own_s, cumulative_s = measured
        else:  # `profile` only counts them
            calls, share = measured, measured / max(1, all_calls)
            own_s, cumulative_s = all_own_s * share, all_cumulative_s * share
        rows.append((caller, calls, own_s, cumulative_s))
    return rows


def _shown(key: Any, code: str) -> list[Any]:
    file, line, name = key
    if file.startswith(code + os.sep):
        file = file[len(code) + 1 :]
    return ["" if file == "~" else file[-_MAX_TEXT:], line, name[:_MAX_TEXT]]
