"""Untrusted input: documents read within bounds, texts made safe to show, and paths, URLs and addresses that must not
lead elsewhere."""
