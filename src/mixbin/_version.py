"""The version, apart from the package so that any room can know it."""

__version__ = "0.2.0"
