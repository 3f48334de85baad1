"""For entry scripts."""
