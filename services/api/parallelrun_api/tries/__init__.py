"""What became of each try of a job, in memory: read from its folder as that grows, and needing nothing else."""
