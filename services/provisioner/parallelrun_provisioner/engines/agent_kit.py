"""The agent that is brought along to nodes of images that aren't ours: where it is there, and how it is started."""

from __future__ import annotations

from typing import Final

KIT: Final = "/opt/parallelrun"
"""Where it is, and must be; `deploy/kit/assemble.py` makes it for this place."""
# -I: nothing that an image sets for its own Python, by variables or files, has a say in the agent's.
PROGRAM: Final = (f"{KIT}/venv/bin/python", "-I", "-m", "parallelrun_agent.main")
