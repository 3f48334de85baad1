"""The shell of every service: its settings, its port for health checks and metrics, and counters of object stores."""
