"""The user's code: what of a folder counts, its snapshots, and what its text tells before it runs."""
