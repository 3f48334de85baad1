"""Poems. Their content: path, meter."""

from typing import Any, Final

from parallelrun_core.assets.definition import WithPath


class Poem(WithPath):
    """A poem: a file."""

    meter: str = "free"
    """The rhythm of its lines."""

    def content(self) -> dict[str, Any]:
        return {"path": self.path, "meter": self.meter}


DOCUMENT: Final = Poem
