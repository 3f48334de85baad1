"""The REST API: submit jobs, follow them, fetch their outputs."""

from parallelrun_api.http import lazy_fastapi as lazy_fastapi  # before any module that imports FastAPI
