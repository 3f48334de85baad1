"""Everything on Redis: keys, the Lua that changes them, and one typed class per role that may call it.

Redis schedules; the job folder is the truth. All state of one job lives under one hash tag, so a job can
move to any shard, and every change that must be atomic is one script in `lua/`.
"""

from typing import Final

OLDEST_REDIS: Final = (6, 2)
"""The first release that has what the scripts use. Every Valkey has it."""
