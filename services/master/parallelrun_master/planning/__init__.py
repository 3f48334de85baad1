"""From the inputs of a job to its mini-batches."""
