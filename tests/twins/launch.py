"""`python -m tests.twins.launch MECHANISM MODULE ARGUMENT…`: a service without one of its mechanisms."""

from __future__ import annotations

import sys

from parallelrun_core.service import launch
from tests.twins.sabotage import without

if __name__ == "__main__":
    with without(sys.argv.pop(1)):
        launch.main()
