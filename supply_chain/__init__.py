"""What comes from elsewhere: is it what was meant, is it known to be vulnerable, and what is it?

These tools are for CI and maintainers, and use the standard library only. They never take silence for a yes: what could
not be found out has an exit code of its own.
"""

from typing import Final

CLEAN: Final = 0
WRONG: Final = 1
WARNED: Final = 76
"""Something is wrong that no change of ours has made, and that only a release must not have."""
UNKNOWN: Final = 75
"""It can't be found out here, for a reason that was printed; `EX_TEMPFAIL`."""
