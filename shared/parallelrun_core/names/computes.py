"""Names of computes, as documents write them."""

from __future__ import annotations

import re
from typing import Final

_BY_ID: Final = re.compile(r".*/computes/([^/]+)", re.IGNORECASE | re.DOTALL)
NOTE: Final = "it names a compute, and has no effect as long as the server has none"
"""What is said of each name where no compute is defined, or nobody knows."""


def plain_name(named: str) -> str:
    """The name itself: `cpus`, for `azureml:cpus` and for the id that Azure ML has for it."""
    name = named.strip().removeprefix("azureml:")
    by_id = _BY_ID.fullmatch(name)
    return by_id[1] if by_id else name
