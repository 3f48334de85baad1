"""`python -m parallelrun_api` is the command `parallelrun-api`."""

from parallelrun_api.main import main

main()
