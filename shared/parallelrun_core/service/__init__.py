"""What every process of ours rests on: logs, signals, pauses between tries, child processes, failpoints."""
