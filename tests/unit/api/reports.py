"""A report of tries, as a leader writes it."""

from __future__ import annotations

from typing import Final

REPORT: Final = """\
Mini-batch Id,Picked Count,Process,Process Start Time,Total,Succeeded,Failed,Elapsed Seconds,Process Seconds,\
Run Method Seconds,Status,Error Category,Error Message,Mini-batch Detail,Peak Memory (MB),Read (MB)
,,node0/process000,2025-11-21T04:39:58.000000,,,,,,,ENTRY_SCRIPT_INIT_START,,,,,
,,node0/process000,2025-11-21T04:39:58.000000,,,,2.000000,,,ENTRY_SCRIPT_INIT_DONE,,,,,
0,1,node0/process000,2025-11-21T04:40:00.000000,10,10,0,0.750000,0.5,0.5,RUN_EXCEPTION,RUN_EXCEPTION,\
"a, ENTRY_SCRIPT_INIT_DONE,that is none",{},,
"""
