"""The base of every process of ours: logs, signals, pauses between tries, child processes, failpoints."""
