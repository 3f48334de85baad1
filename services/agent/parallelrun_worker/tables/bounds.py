"""Opens only files that a job may use: for the processes that read tables with the rights of a master.

A worker reads with its own rights and needs no bounds. A master could read more than the job's user may, and a link can
have been put in the way since the file was listed. So what counts is the file that was opened.
"""

import errno
import os
import re
from collections.abc import Callable
from typing import Any

Open = Callable[..., Any]


def bounded(expression: str) -> Open:
    """An `open` that refuses files whose paths, without links and with a slash at their end, don't match.

    Raises:
        PermissionError: from the function that is returned, if it refuses a file.
    """
    allowed = re.compile(expression, re.DOTALL)

    def open_bounded(path: str, mode: str) -> Any:
        file = open(path, mode)  # noqa: SIM115 - the caller closes it
        real = os.readlink(f"/proc/self/fd/{file.fileno()}")
        if not allowed.match(f"{real}/"):
            file.close()
            raise PermissionError(errno.EACCES, f"it leads to {real!r}, which jobs may not use", path)
        return file

    return open_bounded
