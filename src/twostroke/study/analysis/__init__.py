"""The statistics of a study: pure functions from records to one value, `Analysis`, that a report prints.

No input or output, no HTTP, no clock: the same records and the same seed give the same value, bit for bit.
"""

from twostroke.study.analysis.analyse import analyse
from twostroke.study.analysis.result import Analysis

__all__ = ["Analysis", "analyse"]
