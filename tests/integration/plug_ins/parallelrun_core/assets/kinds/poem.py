"""Poems. Their content: type, path, meter."""

from typing import Any, Final, Literal

from parallelrun_core.assets.definition import WithPath


class Poem(WithPath):
    """A poem: a file."""

    type: Literal["uri_file"] = "uri_file"
    meter: str = "free"
    """The rhythm of its lines."""

    def content(self) -> dict[str, Any]:
        return {"type": self.type, "path": self.path, "meter": self.meter}


DOCUMENT: Final = Poem
