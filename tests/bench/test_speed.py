"""The main table: shares, ratios and what is said where a peer is missing."""

from __future__ import annotations

import pytest
from bench.llama import ABSENT
from bench.rounds import Samples
from bench.speed import KV_TYPES, PROMPTS, ROWS, Result
from bench.steps import SHORT

from bench import speed

RATE = 20e9


def samples(**extra: list[float]) -> dict[str, list[float]]:
    """Two rounds, the second on a machine twice as slow."""
    drift = [1.0, 2.0]
    steps = {1: 0.05, 2: 0.05, 4: 0.055, 8: 0.075, 16: 0.1}
    taken = {f"steps {rows}": [steps[rows] * d for d in drift] for rows in ROWS}
    taken |= {f"batches {rows}": [steps[rows] * d for d in drift] for rows in ROWS}
    taken |= {f"prompts {tokens}": [tokens / 400 * d for d in drift] for tokens in PROMPTS}
    taken["steps bandwidth"] = [RATE / d for d in drift]
    for kv_type in KV_TYPES:
        taken |= {
            f"{kv_type} {name}": [s * d for d in drift] for name, s in (("near", 0.05), ("far", 0.062), ("far8", 0.093))
        }
        taken[f"{kv_type} bandwidth"] = [RATE / d for d in drift]
    return taken | extra


KV_BYTES = {"q16": 29_120, "q8": 14_784}
WEIGHTS = 900_000_000


def result(taken: dict[str, list[float]], peers: dict[str, str], missing: dict[str, str]) -> Result:
    return Result("model", WEIGHTS, KV_BYTES, 8192, peers, Samples(taken, missing))


def test_a_share_counts_weights_and_kv_and_is_the_same_on_a_slower_machine() -> None:
    share = result(samples(), {}, {}).share(1)
    assert share.median == pytest.approx((WEIGHTS + (SHORT + 1) * 29_120) / RATE / 0.05)
    assert share.p10 == pytest.approx(share.p90)


def test_added_context_is_set_against_its_kv_bytes() -> None:
    added = result(samples(), {}, {}).added("q16")
    assert added.median == pytest.approx(0.012 / ((8192 - 512) * 29_120 / RATE))
    assert result(samples(), {}, {}).added("q8").median > added.median


def test_without_a_peer_the_page_says_so() -> None:
    page = speed.tables(result(samples(), {}, {}))
    assert ABSENT in page
    assert "ours is faster" not in page
    assert "| 8 | " in page
    assert "1.50 (1.50–1.50)" in page  # 8 rows over 1


def test_a_peer_is_compared_row_by_row() -> None:
    theirs = {f"peer0 p{rows}": [0.15, 0.3] for rows in (*ROWS, *PROMPTS)} | {"peer0 n": [0.06, 0.12]}
    page = speed.tables(result(samples(**theirs), {"peer0": "llama.cpp [x]"}, {}))
    (one,) = [line for line in page.splitlines() if line.startswith("| 1 |")]
    (eight,) = [line for line in page.splitlines() if line.startswith("| 8 |")]
    assert "1.20× (1.20–1.20)" in one  # decoding is compared with decoding
    assert "2.00× (2.00–2.00)" in eight


def test_a_peer_that_failed_is_named_with_its_reason() -> None:
    page = speed.tables(result(samples(), {"peer0": "llama.cpp [x]"}, {"peer0": "killed by SIGILL"}))
    assert "llama.cpp [x]: not measured, killed by SIGILL." in page
    assert "ours is faster" not in page


def test_a_context_too_short_for_a_prompt_leaves_it_out() -> None:
    taken = samples()
    del taken["prompts 2048"]
    assert "2048 tokens" not in speed.tables(result(taken, {}, {}))
