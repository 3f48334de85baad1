"""A whole cluster on one machine: a Redis server and all services, as processes of the user, without root or Docker."""
