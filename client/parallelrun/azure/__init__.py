"""What Azure ML's own client needs on this machine to reach a ParallelRun server: `parallelrun azure-env`."""
