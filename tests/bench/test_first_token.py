"""First tokens in pairs: what is asked is a miss first and a hit then, and the page says how sure the median is."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.first_token import HITS, OFF, ON, TEXTS, TIMES, Result
from bench.workload import Prompt

from bench import first_token, report
from tests.tiny import Tiny, write_model
from twostroke.assemble import open_model
from twostroke.config import Settings

SECONDS = {
    "short, not cached": {OFF: [1.0, 2.0, 4.0], ON: [1.1, 2.0, 4.0]},
    "short, cached": {OFF: [0.1, 0.1, 0.1], ON: [0.1, 0.12, 0.1]},
    "long, not cached": {OFF: [], ON: []},
    "long, cached": {OFF: [], ON: []},
}


def test_ratios_are_of_pairs() -> None:
    result = Result("large", "small", SECONDS)
    assert result.ratios("short, not cached") == [pytest.approx(1.1), 1.0, 1.0]


def test_the_page_has_a_row_for_misses_and_one_for_hits_of_what_was_asked() -> None:
    page = first_token.markdown(Result("large", "small", SECONDS))
    assert "with small loaded" in page
    assert "| short, cached | 3 | 100 (100–100) | 1.00 (1.00–1.16) | 1.000–1.200 |" in page
    assert "| long" not in page


def test_every_prompt_is_asked_in_both_orders_and_found_the_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached: list[int] = []
    hear = first_token.Session.hear

    def noted(self: first_token.Session, request: object, most: int) -> float:
        engine = self.assembly.engine
        observe = lambda report: cached.extend(a.cached for a in report.admitted)  # noqa: E731
        engine.observers = (*engine.observers, observe)
        try:
            return hear(self, request, most)  # type: ignore[arg-type]
        finally:
            engine.observers = engine.observers[:-1]

    monkeypatch.setattr(first_token.Session, "hear", noted)
    path = write_model(tmp_path / "tiny.gguf", Tiny())
    settings = Settings(model=str(path), context=1024, kv_memory=2**21, calibrate=False)
    prompts = [Prompt("one", "chat", ({"role": "user", "content": "one " * 20},))]
    result = first_token.run(open_model(settings), settings, prompts, rounds=1)
    times = 2 * TIMES["short"]
    counts = {text: {mode: len(s) for mode, s in result.seconds[text].items()} for text in TEXTS}
    assert counts["short, not cached"] == {OFF: times, ON: times}
    assert counts["short, cached"] == {OFF: HITS * times, ON: HITS * times}
    assert counts["long, cached"] == {OFF: 0, ON: 0}
    assert report.plain(result)["seconds"]["short, cached"][ON]
    visits = cached[2:]  # the first two warm up
    assert len(visits) == times * 2 * (1 + HITS)
    for start in range(0, len(visits), 2 * (1 + HITS)):
        assert visits[start : start + 2] == [0, 0]
        assert all(hit > 0 for hit in visits[start + 2 : start + 2 * (1 + HITS)])
