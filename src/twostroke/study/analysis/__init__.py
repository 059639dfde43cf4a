"""The statistics of a study: pure functions from records to one value, `Analysis`, that a report prints.

No input or output, no HTTP, no clock: the same records and the same seed give the same value, bit for bit.
"""
