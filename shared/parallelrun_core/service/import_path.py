"""The order in which Python looks for modules in a process of ours, where the user has set PYTHONPATH.

Its folders hold the modules of the user's scripts. One named as a package that we import, such as `redis.py`, would
otherwise be imported in its place. The environment isn't touched: workers and scripts have PYTHONPATH as it was set.
"""

from __future__ import annotations

import os
import sys


def put_python_path_last() -> None:
    """Move the folders of PYTHONPATH to the end of `sys.path`, but those from which this program itself is imported."""
    if not os.environ.get("PYTHONPATH") or sys.flags.ignore_environment:
        return
    folders = {os.path.abspath(entry) for entry in os.environ["PYTHONPATH"].split(os.pathsep)}
    last = [
        entry
        for entry in sys.path
        if os.path.abspath(entry) in folders and not os.path.isdir(os.path.join(entry, "parallelrun_core"))
    ]
    sys.path[:] = [entry for entry in sys.path if entry not in last] + last
