"""Wire types: what services tell each other, on Redis and in job folders."""
