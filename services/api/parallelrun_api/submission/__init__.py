"""Submission: how a document becomes a job that Redis knows, and how a job that has ended goes on."""
