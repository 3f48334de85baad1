"""Untrusted input: documents read within bounds, texts made safe to show, paths that must not lead out of a folder."""
