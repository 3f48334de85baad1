"""Permits for calls of services that somebody else runs: workers ask their agent, and agents share the cluster's rate.

Modules: `server` (a thread that answers workers), `queue` (who waits, and when each may begin; no I/O).
"""
