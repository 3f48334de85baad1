"""The REST API: submit jobs, follow them, fetch their outputs."""
