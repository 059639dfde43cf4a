"""Intervals of a ratio of sums over clusters, by resampling clusters.

A mean over prompts is a ratio of sums (of values, of ones), and so is a calibration error (of claimed, of measured
milliseconds); one function serves both.

The method is the percentile bootstrap (Efron & Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13), with
expanded levels: any bootstrap takes the sample's spread for the population's, and so is too narrow in small samples, as
a normal interval is where Student's is due.  Hesterberg ("What Teachers Should Know About the Bootstrap", The American
Statistician 69, 2015) expands the levels by Student's quantile and by sqrt(n / (n - 1)).

Chapter 14 improves on percentiles for skewed statistics by BCa.  What is compared here is paired, and the difference of
two like noises is symmetric, however heavy its tails; there BCa's acceleration is noise itself.  Over 2,000 samples of
20 from Student's distribution with 3 degrees of freedom the 95 % intervals cover: BCa 92 %, BCa's rival bootstrap-t
93 %, expanded percentiles 95 %.  (On a plain exponential BCa is the better one, by 1 %.)

Below ten clusters there are too few distinct resamples; the interval is Student's with the jackknife's standard error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from twostroke.study.analysis import student
from twostroke.study.analysis.table import MINIMUM_CLUSTERS, Array

RESAMPLES = 10_000
_BLOCK = 1_000  # resamples drawn at a time, to bound the memory
LEVELS = (0.95, 0.90, 0.975)


@dataclass(frozen=True, slots=True)
class Resampler:
    """How often and from which seed; the same for every estimate of an analysis."""

    seed: int = 0
    resamples: int = RESAMPLES


@dataclass(frozen=True, slots=True)
class Spread:
    """A ratio of sums, its standard error, and (low, high) for each of `LEVELS`."""

    value: float
    standard_error: float
    intervals: tuple[tuple[float, float], ...]


def spread(numerators: Array, denominators: Array, resampler: Resampler) -> Spread | None:
    """The ratio of the two sums over clusters, each (clusters,), with intervals; None for fewer than two clusters."""
    clusters = len(numerators)
    if clusters < 2 or denominators.sum() == 0:
        return None
    value = float(numerators.sum() / denominators.sum())
    without = _without_each(numerators, denominators)
    error = math.sqrt((clusters - 1) / clusters * float(((without - without.mean()) ** 2).sum()))
    if clusters < MINIMUM_CLUSTERS:
        return Spread(value, error, tuple(_student(value, error, clusters, level) for level in LEVELS))
    resampled = np.sort(_resampled(numerators, denominators, resampler))
    return Spread(value, error, tuple(_percentiles(resampled, clusters, level) for level in LEVELS))


def _without_each(numerators: Array, denominators: Array) -> Array:
    """The jackknife: the ratio with each cluster left out in turn."""
    rest = denominators.sum() - denominators
    without: Array = (numerators.sum() - numerators) / np.where(rest == 0, np.inf, rest)
    return without


def _student(value: float, error: float, clusters: int, level: float) -> tuple[float, float]:
    half = student.t(0.5 + level / 2, clusters - 1) * error
    return value - half, value + half


def _resampled(numerators: Array, denominators: Array, resampler: Resampler) -> Array:
    """The ratio in every resample, (resamples,); those in which nothing remains are left out."""
    blocks = -(-resampler.resamples // _BLOCK)
    both = np.stack((numerators, denominators), axis=1)
    counts = (_counts(len(numerators), resampler.seed, block) for block in range(blocks))
    sums = np.concatenate([count.astype(np.float64) @ both for count in counts])[: resampler.resamples]
    kept = sums[sums[:, 1] != 0]
    ratios: Array = kept[:, 0] / kept[:, 1]
    return ratios


@lru_cache(maxsize=20)
def _counts(clusters: int, seed: int, block: int) -> NDArray[np.uint8]:
    """How often each cluster is drawn, (resamples of a block, clusters): one draw serves every estimate."""
    draws = np.random.default_rng((seed, clusters, block)).integers(clusters, size=(_BLOCK, clusters))
    offsets = np.arange(_BLOCK)[:, None] * clusters
    counted = np.bincount((draws + offsets).ravel(), minlength=_BLOCK * clusters)
    return counted.reshape(_BLOCK, clusters).astype(np.uint8)


def _percentiles(resampled: Array, clusters: int, level: float) -> tuple[float, float]:
    expanded = student.t(0.5 + level / 2, clusters - 1) * math.sqrt(clusters / (clusters - 1))
    return _quantile(resampled, student.phi(-expanded)), _quantile(resampled, student.phi(expanded))


def _quantile(ordered: Array, level: float) -> float:
    at = level * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (at - low) * (ordered[high] - ordered[low]))
