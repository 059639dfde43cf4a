"""Throughputs beside the peer's, and prompts that share no beginning."""

from __future__ import annotations

from bench.concurrency import Result
from bench.llama import ABSENT
from bench.rounds import Samples

from bench import concurrency

PEER = "llama.cpp [x]"


def samples(**rates: list[float]) -> Samples:
    taken: dict[str, list[float]] = {}
    for name, values in rates.items():
        server = f"{PEER} {name[-1]}" if name.startswith("peer") else f"twostroke {name[-1]}"
        taken |= {f"{server} rate": values, f"{server} first": [0.5] * 2, f"{server} token": [0.02] * 2}
    return Samples(taken, {})


def test_throughput_is_compared_at_the_same_number_of_sequences_round_by_round() -> None:
    result = Result("model", ("twostroke", PEER), samples(ours4=[80.0, 40.0], peer4=[40.0, 20.0], ours8=[90.0, 90.0]))
    page = concurrency.markdown(result)
    (four,) = [line for line in page.splitlines() if line.startswith("| twostroke 4 ")]
    (eight,) = [line for line in page.splitlines() if line.startswith("| twostroke 8 ")]
    assert four.endswith("| 2.00 (2.00–2.00) |")
    assert eight.endswith("| — |")


def test_without_a_peer_the_page_says_so() -> None:
    page = concurrency.markdown(Result("model", ("twostroke",), samples(ours1=[20.0, 20.0])))
    assert ABSENT in page
    assert "tokens/s ÷" not in page


def test_a_server_that_failed_is_named() -> None:
    failed = Samples(samples(ours1=[20.0, 20.0]).taken, {f"{PEER} 1": "it died"})
    assert f"{PEER} 1: not measured, it died." in concurrency.markdown(Result("model", ("twostroke", PEER), failed))


def test_prompts_share_no_text_and_no_beginning() -> None:
    licence = [7] * 4
    texts = [[*licence, *range(100, 130)], [*licence, *range(200, 220)], range(300, 302)]
    prompts = list(concurrency.stretches(texts, 4))
    assert prompts[:3] == [licence, [100, 101, 102, 103], [200, 201, 202, 203]]
    told = [token for prompt in prompts for token in prompt]
    assert len(told) == len(licence) + 28 + 20
    assert len({tuple(prompt) for prompt in prompts}) == len(prompts)
