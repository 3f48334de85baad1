"""HTTP: the concerns of every request and answer, whatever its subject."""
