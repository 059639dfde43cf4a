"""Paired comparisons of arms: a contrast of logarithms is a ratio, a contrast of milliseconds a difference.

A contrast gives each of its arms a weight.  Inside each call it is averaged over the repeats, and then over the calls,
so that a prompt counts once however many of its repeats were answered; calls of one cluster are resampled together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twostroke.study.analysis.bootstrap import Resampler, Spread, spread
from twostroke.study.analysis.result import Estimate
from twostroke.study.analysis.table import Array, Outcomes

Contrast = Mapping[str, int]  # arm: weight; the weights add up to 0


@dataclass(frozen=True, slots=True)
class Sample:
    """How estimates are made in one load: which cluster each call is in, and how clusters are resampled."""

    clusters: NDArray[np.intp]  # (calls,)
    resampler: Resampler


def ratio(outcomes: Outcomes, contrast: Contrast, sample: Sample) -> Estimate | None:
    """The geometric mean over prompts of the product of the arms' times to the power of their weights."""
    return _mean(_contrast(outcomes, contrast, np.log), sample, math.exp)


def difference(outcomes: Outcomes, contrast: Contrast, sample: Sample) -> Estimate | None:
    """The mean over prompts of the weighted sum of the arms' times, in milliseconds."""
    return _mean(_contrast(outcomes, contrast, np.positive), sample, float)


def error_percent(claimed: Array, measured: Array, sample: Sample) -> Estimate | None:
    """100 × (sum of claimed / sum of measured - 1), both (calls, repeats); NaN in either leaves the pair out."""
    known = np.isfinite(claimed) & np.isfinite(measured)
    sums = [np.where(known, values, 0.0).sum(axis=1) for values in (claimed, measured)]
    return _estimate(sums[0], sums[1], known, sample, lambda share: 100 * (share - 1))


def _contrast(outcomes: Outcomes, contrast: Contrast, scale: Callable[[Array], Array]) -> Array | None:
    if not contrast.keys() <= outcomes.keys():
        return None
    terms = [weight * scale(outcomes[arm]) for arm, weight in contrast.items()]
    values: Array = np.sum(terms, axis=0)
    return values


def _mean(values: Array | None, sample: Sample, transform: Callable[[float], float]) -> Estimate | None:
    if values is None:
        return None
    known = np.isfinite(values)
    counts = known.sum(axis=1)
    means = np.where(known, values, 0.0).sum(axis=1) / np.maximum(counts, 1)
    return _estimate(means, (counts > 0).astype(np.float64), known, sample, transform)


def _estimate(
    numerators: Array,
    denominators: Array,
    known: NDArray[np.bool_],
    sample: Sample,
    transform: Callable[[float], float],
) -> Estimate | None:
    calls = known.any(axis=1)
    present, cluster = np.unique(sample.clusters[calls], return_inverse=True)
    above, below = (_sums(cluster, values[calls], len(present)) for values in (numerators, denominators))
    found = spread(above, below, sample.resampler)
    return _values(found, transform, int(calls.sum()), int(known.sum()), len(present)) if found else None


def _sums(cluster: NDArray[np.intp], values: Array, clusters: int) -> Array:
    return np.bincount(cluster, values, clusters).astype(np.float64)


def _values(found: Spread, transform: Callable[[float], float], prompts: int, pairs: int, clusters: int) -> Estimate:
    (low, high), (low_90, high_90), (low_97_5, high_97_5) = (
        (transform(low), transform(high)) for low, high in found.intervals
    )
    return Estimate(
        transform(found.value),
        low,
        high,
        low_90,
        high_90,
        low_97_5,
        high_97_5,
        standard_error=found.standard_error,
        prompts=prompts,
        pairs=pairs,
        clusters=clusters,
    )
