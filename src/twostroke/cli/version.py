"""Which Twostroke this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    """The installed version of this package."""
    try:
        return version("twostroke")
    except PackageNotFoundError:
        return "0 (not installed)"
