"""The history of a job's tries in memory: read from its folder as that grows, and needing nothing else."""
