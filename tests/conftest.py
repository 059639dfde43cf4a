"""What every test shares: properties are tried on the same examples each time, however slow the machine is."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")
