"""Job intake: a document becomes a job spec, and the spec a job that is announced, goes on or is canceled."""
