"""What stands around every request and answer, whatever they are about."""
