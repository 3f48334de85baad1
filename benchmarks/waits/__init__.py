"""Parts of the benchmark `waiting`.

Modules: `service` (what is waited for, as a process of its own), `client` (one call of it, the same in all programs),
`scripts` (entry scripts), `loop` (the asyncio loop written by hand), `ray_async` (Ray Data's asynchronous actors),
`rate` (a limit that two nodes keep together).
"""
