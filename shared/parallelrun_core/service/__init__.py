"""The frame of every service process: settings, logs, health, heartbeat, start and end."""
