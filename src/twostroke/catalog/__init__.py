"""Model names to verified files."""

from twostroke.catalog.names import CATALOG, Entry, known
from twostroke.catalog.store import home, resolve

__all__ = ["CATALOG", "Entry", "home", "known", "resolve"]
