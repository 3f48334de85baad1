"""The cluster in the background as commands find it: its files (`state.py`) and its lock (`lock.py`)."""
