"""HTTP to a server: which one, requests and the errors of their answers (`transport.py`), retries while it is away."""
