"""The evidence of a job, from what is in its folder: readable while it runs, and when all services are dead."""

from parallelrun_core.adviser.reading.evidence import evidence_of

__all__ = ["evidence_of"]
