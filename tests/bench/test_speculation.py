"""How drafters are compared: prompt by prompt, with the peer's own figures read as ours are."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from bench.rounds import Unmeasured
from bench.speculation import Result, Taken
from bench.workload import Prompt

from bench import speculation

PROMPT = Prompt("code-1", "code", ({"role": "user", "content": "?"},))


def taken(prompt: str, kind: str, per_token_ms: float, tokens: int = 11, passes: int = 10) -> Taken:
    return Taken(prompt, kind, tokens, passes, 1.0, per_token_ms * (tokens - 1) / 1000)


ANSWERS = {
    "off": [taken("a", "code", 40), taken("b", "code", 60), taken("c", "chat", 50)],
    "auto": [taken("a", "code", 20, passes=5), taken("b", "code", 20, passes=2), taken("c", "chat", 50)],
    "llama.cpp off": [taken("a", "code", 80), taken("b", "code", 80), taken("c", "chat", 80)],
    "llama.cpp ngram-simple": [taken("a", "code", 70), taken("b", "code", 60), taken("c", "chat", 90)],
}
RESULT = Result("target", "small", 128, ANSWERS, {"llama.cpp draft-simple": "it died"})


def test_time_per_token_leaves_the_first_out() -> None:
    assert taken("a", "code", 40).per_token_s == pytest.approx(0.04)


def test_the_peers_passes_are_its_tokens_without_the_accepted_drafts() -> None:
    timings = {"predicted_n": 21, "predicted_ms": 1000.0, "prompt_ms": 500.0, "draft_n": 30, "draft_n_accepted": 12}
    answer = speculation.from_timings(PROMPT, timings)
    assert (answer.tokens, answer.passes) == (21, 8)
    assert answer.first_s == 0.5
    assert answer.per_token_s == pytest.approx(0.05)


def test_a_peer_that_drafts_nothing_gives_a_token_a_pass() -> None:
    timings = {"predicted_n": 21, "predicted_ms": 1000.0, "prompt_ms": 500.0}
    assert speculation.from_timings(PROMPT, timings).passes == 20


def test_ratios_are_formed_prompt_by_prompt_within_a_kind() -> None:
    spread = RESULT.faster("auto", "off", "code")
    assert spread.median == pytest.approx(2.5)
    assert spread.samples == 2
    assert RESULT.faster("auto", "off", "chat").median == pytest.approx(1.0)


def test_the_best_peer_is_chosen_for_each_kind() -> None:
    assert RESULT.best_peer("code") == "llama.cpp ngram-simple"
    assert RESULT.best_peer("chat") == "llama.cpp off"


def test_without_a_peer_there_is_no_best() -> None:
    alone = Result("target", None, 128, {"off": ANSWERS["off"]}, {})
    assert alone.best_peer("code") is None
    assert "faster than llama" not in speculation.markdown(alone)


def test_kinds_come_in_the_order_asked() -> None:
    assert RESULT.kinds() == ("code", "chat")


def test_the_page_has_a_row_for_every_mode_and_names_what_failed() -> None:
    page = speculation.markdown(RESULT)
    assert page.count("| auto |") == 2
    assert "2.86" in page  # 20 tokens in 7 passes
    assert "faster than llama.cpp ngram-simple" in page
    assert "llama.cpp draft-simple: not measured, it died." in page


def test_a_peer_is_compared_with_its_own_plain_decoding() -> None:
    (row,) = [
        line for line in speculation.markdown(RESULT).splitlines() if line.startswith("| llama.cpp ngram-simple")
    ][:1]
    assert "1.24× (" in row  # 80/70 and 80/60


def test_the_first_token_is_compared_over_all_prompts() -> None:
    assert "| auto | 1.00 (1.00–1.00) |" in speculation.first_token(RESULT)


def test_answers_too_short_to_have_a_pace_are_left_out_of_every_mode() -> None:
    answers = {"off": [taken("a", "code", 40), taken("b", "code", 60)], "auto": [taken("a", "code", 40, tokens=1)]}
    answers["auto"].append(taken("b", "code", 30))
    kept = speculation._comparable(answers)
    assert {mode: [t.prompt for t in rows] for mode, rows in kept.items()} == {"off": ["b"], "auto": ["b"]}


PROMPTS = [Prompt(name, "code", ({"role": "user", "content": "?"},)) for name in "abc"]


def answer(prompt: Prompt, tokens: tuple[int, ...]) -> Taken:
    return taken(prompt.id, prompt.kind, 40)


def failing(on: str, error: BaseException) -> speculation.Ask:
    def ask(prompt: Prompt, tokens: tuple[int, ...]) -> Taken:
        if prompt.id == on:
            raise error
        return answer(prompt, tokens)

    return ask


def asked(ours: speculation.Ask, asks: Mapping[str, speculation.Ask]) -> tuple[dict[str, list[str]], dict[str, str]]:
    missing: dict[str, str] = {}

    def together(prompt: Prompt, tokens: tuple[int, ...]) -> Mapping[str, Taken]:
        return {"off": ours(prompt, tokens)}

    panel = speculation.Panel(lambda messages: tuple(range(len(messages))), together, asks, missing)
    answers = panel.ask(PROMPTS)
    return {mode: [t.prompt for t in rows] for mode, rows in answers.items()}, missing


def test_a_mode_that_fails_is_left_out_and_named() -> None:
    answers, missing = asked(answer, {"llama.cpp off": failing("b", Unmeasured("it died"))})
    assert answers == {"off": ["a", "b", "c"]}
    assert missing == {"llama.cpp off": "it died"}


def test_an_interrupt_keeps_the_prompts_that_every_mode_answered() -> None:
    answers, _ = asked(answer, {"auto": failing("c", KeyboardInterrupt())})
    assert answers == {"off": ["a", "b"], "auto": ["a", "b"]}


def test_an_interrupt_before_the_first_prompt_is_answered_goes_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        asked(failing("a", KeyboardInterrupt()), {})
