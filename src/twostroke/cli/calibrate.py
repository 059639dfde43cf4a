"""`twostroke calibrate`: measured costs as a table of step times with bars, or as the document that machines read."""

from __future__ import annotations

from collections.abc import Mapping

from twostroke.cli.screen import progress
from twostroke.config import Settings
from twostroke.govern.cost import CostCurves

WIDTH = 40  # characters of the longest bar


def measured(settings: Settings) -> CostCurves:
    """Load the model and measure anew; the next start uses what was found.  Raises `ModelError`."""
    from twostroke.assemble import calibrated, open_model

    with progress() as show:
        model = open_model(settings, show)
    return calibrated(model, settings)


def shown(curves: CostCurves, *, as_json: bool) -> str:
    """What `twostroke calibrate` prints."""
    return curves.to_json() if as_json else "\n".join([*_head(curves), *_steps(curves), *_contexts(curves)])


def _head(curves: CostCurves) -> list[str]:
    lines = [
        f"kernels             {curves.kernels or 'unknown'}",
        f"read bandwidth      {curves.read_bandwidth_gb_s:.1f} GB/s",
        f"weights per step    {curves.bytes_per_step / 1e6:.0f} MB",
        f"prefill             {curves.prefill_tokens_per_s:.0f} tokens/s",
    ]
    share = bandwidth_share(curves)
    return [*lines, f"one row             {share:.0%} of the read bandwidth"] if share is not None else lines


def bandwidth_share(curves: CostCurves) -> float | None:
    """How close a step of one row comes to reading its weights at full bandwidth; None where that was not measured."""
    if not (curves.read_bandwidth_gb_s and curves.bytes_per_step):
        return None
    return curves.bytes_per_step / 1e9 / curves.step(1) / curves.read_bandwidth_gb_s


def _steps(curves: CostCurves) -> list[str]:
    return ["", f"{'rows':>8} {'ms':>9} {'÷ 1 row':>8}", *_bars(curves.step_ms)]


def _contexts(curves: CostCurves) -> list[str]:
    if not curves.step_ms_by_context:
        return []
    return ["", f"{'context':>8} {'ms':>9} {'÷ first':>8}", *_bars(curves.step_ms_by_context)]


def _bars(curve: Mapping[int, float]) -> list[str]:
    first, longest = next(iter(curve.values())), max(curve.values())
    return [
        f"{point:8} {ms:9.2f} {ms / first:8.2f} {'█' * max(1, round(WIDTH * ms / longest))}"
        for point, ms in curve.items()
    ]
