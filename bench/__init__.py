"""Measurements: what Twostroke takes on this machine, beside peers, in one run.

Nothing here is imported by the package or needed to use it.
"""
