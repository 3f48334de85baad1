"""Starter `http`: a service that takes data by HTTP answers for each file."""

from parallelrun.starter.kind import StarterKind

KIND = StarterKind(sample="data", script="src/call.py", has_stand_in=True)
