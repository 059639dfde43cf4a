"""The only place that names concrete classes: from what a person chose to an engine that runs.

`open_model` reads a file and packs its weights, once; `assemble` builds an engine over them, which is cheap, so several
engines can stand on one model.  Everything made here is handed on through protocols.
"""

from twostroke.assemble.engine import Assembly, assemble
from twostroke.assemble.model import Model, Progress, open_codec, open_model, quiet
from twostroke.assemble.runners import calibrated

__all__ = ["Assembly", "Model", "Progress", "assemble", "calibrated", "open_codec", "open_model", "quiet"]
