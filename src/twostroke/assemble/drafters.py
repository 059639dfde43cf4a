"""The drafters a request may ask for: the table's, and the draft model where one is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from twostroke.assemble.judge import judge_drafter
from twostroke.assemble.runners import ModelRunner
from twostroke.cache.space import GroupSpace
from twostroke.config import Settings
from twostroke.govern.draft_model import DepthChooser, gain
from twostroke.govern.governor import CostGovernor
from twostroke.runtime.draft import PACE, ModelDrafter
from twostroke.speculate import table
from twostroke.speculate.acceptance import Acceptance
from twostroke.speculate.auto import Auto
from twostroke.speculate.lengths import Lengths
from twostroke.speculate.per_request import PerRequest

LEAST_GAIN = 0.007  # share of the time that catching up may take where little is expected: a look, now and then
MOST_UNPROVEN = 0.02  # … and where no more than a hope speaks for it
EXPECTED_AGREEMENT = 0.8  # of a draft model with its target, before any was seen


def per_request(settings: Settings, governor: CostGovernor, model: ModelDrafter | None) -> PerRequest:
    """Every drafter by name, behind the one that the engine sees."""
    drafters = table.build_all(table.Settings(draft_tokens=max(settings.draft_tokens, 1)))
    if model is not None:
        drafters["draft"] = Auto((), model, DepthChooser(lambda: governor.curves, governor.spend), model.name)
        lookups = [drafters[name] for name in table.FREE]
        drafters["auto"] = Auto(lookups, model, DepthChooser(lambda: governor.curves, governor.spend))
    judge_drafter(settings.speculate, drafters)
    return PerRequest(drafters, settings.speculate)


def model_drafter(draft: ModelRunner, space: GroupSpace, settings: Settings, governor: CostGovernor) -> ModelDrafter:
    def repays(behind: int, remaining: int, survival: Sequence[float], optimistic: Sequence[float]) -> bool:
        """Catching up costs draft passes; what it can win is a share of the steps still expected."""
        curves = governor.curves
        cost_s = behind * curves.draft(PACE) / PACE
        share = max(gain(survival, curves), min(gain(optimistic, curves), MOST_UNPROVEN), LEAST_GAIN)
        return cost_s < share * remaining * curves.step(1)

    record, depth = Acceptance(EXPECTED_AGREEMENT), max(settings.draft_tokens, 1)
    return ModelDrafter(draft.runner, space, record, Lengths(), depth, repays)
