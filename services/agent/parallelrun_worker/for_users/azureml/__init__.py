"""Stand-ins for what scripts import of Azure ML. Real packages of the same names win: their folders come first."""

from pkgutil import extend_path

__path__ = extend_path([], __name__)
