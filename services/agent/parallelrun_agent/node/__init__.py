"""The node itself: its disk, its memory, and how it is used."""
