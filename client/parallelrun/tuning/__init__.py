"""`parallelrun tune`: tries a job with a few settings for a short time each, and says which fit."""
