"""The evidence of a job, from what is in its folder: readable while it runs, and when all services are dead."""
