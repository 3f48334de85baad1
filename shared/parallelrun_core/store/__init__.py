"""All that is on Redis: the keys, the Lua scripts that change them, and one typed class for each role that calls these.

Redis schedules; the job folder is the truth. All state of one job is under one hash tag, so a job can move to any
shard, and every change that must be atomic is one script in `lua/`.
"""

from typing import Final

OLDEST_REDIS: Final = (6, 2)
"""The first release with all that the scripts use; every Valkey has it."""
