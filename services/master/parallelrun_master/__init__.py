"""The master: plans, publishes, watches and decides. One leader process for each job."""
