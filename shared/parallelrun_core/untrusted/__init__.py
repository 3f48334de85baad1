"""Untrusted input: texts made safe to show, and paths that must not lead out of a folder."""
