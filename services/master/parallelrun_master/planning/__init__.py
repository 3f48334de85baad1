"""Planning: makes mini-batches of the inputs of a job."""
