"""What concerns every request and answer, whatever its subject."""
