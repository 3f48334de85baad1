"""Loops of a pipeline. The client reads the switch for them when it is imported: so, in another process."""

import os
import subprocess
import sys

subprocess.run(
    [sys.executable, "-W", "ignore", "private/loops.py"],
    env={**os.environ, "AZURE_ML_CLI_PRIVATE_FEATURES_ENABLED": "true"},
    check=True,
)
