"""Metrics that are read from their owners when somebody scrapes, instead of being counted along.

What a governor says of itself and which faults the engine put up with are such: their owners keep the totals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

Explain = Callable[[], Mapping[str, object]]  # numbers, or mappings of labels to numbers, by name
SAID = {
    "expected_accepted": ("spec_decode_expected_accepted_tokens", "Drafts that the governor expected to come true."),
    "expected_saved_s": ("spec_decode_expected_saved_seconds", "Time that drafts were expected to save."),
    "saved_s": ("spec_decode_saved_seconds", "Time that drafts did save, by the cost curves."),
    "machine_scale": ("machine_scale", "Step times now, over step times when the machine was measured."),
}
ACCEPTANCE = "acceptance"  # the share of recent drafts that came true, by drafter


class Watched(Collector):
    """A collector over a governor's `explain` and an engine's `faults`; names that are not said are left out."""

    def __init__(self, model: str, explain: Explain, faults: Callable[[], Mapping[str, int]]) -> None:
        self._model = model
        self._explain = explain
        self._faults = faults

    def collect(self) -> Iterator[Metric]:
        said = self._explain()
        for name, (metric, help) in SAID.items():
            if isinstance(value := said.get(name), int | float):
                yield self._gauge(metric, help, None, {"": value})
        if isinstance(recent := said.get(ACCEPTANCE), Mapping):
            yield self._gauge("spec_decode_recent_acceptance", "Share of recent drafts accepted.", "source", recent)
        yield self._gauge("engine_faults", "What neighbours of the engine did wrong.", "neighbour", self._faults())

    def _gauge(self, name: str, help: str, label: str | None, values: Mapping[str, float]) -> GaugeMetricFamily:
        gauge = GaugeMetricFamily(f"twostroke:{name}", help, labels=["model_name", *([label] if label else [])])
        for key, value in dict(values).items():
            gauge.add_metric([self._model, *([key] if label else [])], value)
        return gauge
