"""The agent, one per node: leases mini-batches, runs and guards the workers, commits what they return."""
