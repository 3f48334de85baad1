"""What every service needs to run as a process: settings, logs, health, heartbeat, start and end."""
