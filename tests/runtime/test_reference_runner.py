"""The reference runner gives the reference's tokens, whatever the batch, the chunks and the block table."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiny import Tiny, write_model
from twostroke.errors import RunnerFailed
from twostroke.runtime.reference import Reference, log_softmax
from twostroke.runtime.reference_runner import ReferenceRunner, draw
from twostroke.runtime.weights import gguf
from twostroke.types import Copy, Picks, Row, Sampling

TOKENS = (72, 101, 298, 0, 101, 57, 9, 200, 33, 33)
BLOCKS = (5, 2, 7)  # of 4 positions
WARM = Sampling(temperature=0.8, seed=7)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    return Reference(gguf.read(write_model(path, Tiny("qwen2", weights="Q5_1"))), keep=True)


def runner(model: Reference) -> ReferenceRunner:
    return ReferenceRunner(model, blocks=12, block_size=4)


def row(
    tokens: tuple[int, ...] = TOKENS,
    start: int = 0,
    samples: int = 1,
    sampling: Sampling = WARM,
    sequence: int = 1,
    blocks: tuple[int, ...] = BLOCKS,
    copies: tuple[Copy, ...] = (),
) -> Row:
    return Row(sequence, start, tokens, max(0, samples - 1), samples, blocks, sampling, copies=copies)


def test_greedy_choices_are_those_of_the_reference(model: Reference) -> None:
    (picks,) = runner(model).execute([row(samples=len(TOKENS), sampling=Sampling())])
    assert list(picks.tokens) == model.logits(TOKENS).argmax(axis=1).tolist()
    assert picks.logprobs == ()


@given(
    cuts=st.sets(st.integers(1, len(TOKENS) - 1)), temperature=st.sampled_from([0.0, 0.8]), seed=st.integers(0, 2**63)
)
@settings(max_examples=25, deadline=None)
def test_chunks_do_not_matter(model: Reference, cuts: set[int], temperature: float, seed: int) -> None:
    sampling = Sampling(temperature=temperature, seed=seed, logprobs=3)
    (whole,) = runner(model).execute([row(sampling=sampling, samples=3)])
    cut, edges = runner(model), [0, *sorted(c for c in cuts if c < len(TOKENS) - 3), len(TOKENS)]
    for a, b in pairwise(edges):
        (picks,) = cut.execute([row(TOKENS[a:b], a, 3 if b == len(TOKENS) else 0, sampling)])
    assert picks == whole


def test_a_batch_does_not_matter(model: Reference) -> None:
    rows = [
        row(samples=2, blocks=(0, 1, 2)),
        row(TOKENS[::-1], samples=1, sequence=2, blocks=(3, 4, 5)),
        row(TOKENS[3:7], samples=4, sequence=3, blocks=(6,)),
    ]
    together = runner(model).execute(rows)
    alone = [runner(model).execute([one])[0] for one in rows]
    assert together == alone


def test_no_samples_no_tokens(model: Reference) -> None:
    assert runner(model).execute([row(samples=0)]) == [Picks(())]
    assert runner(model).execute([]) == []


def test_copies_come_first_and_carry_state(model: Reference) -> None:
    one = runner(model)
    (whole,) = one.execute([row(blocks=(0, 1, 2))])
    copied = row(TOKENS[6:], 6, blocks=(0, 9, 10), copies=(Copy(1, 9, 2),), sequence=2)
    assert one.execute([copied]) == [whole]


def test_rewriting_a_rejected_cell(model: Reference) -> None:
    one = runner(model)
    one.execute([row((*TOKENS[:6], 1, 2, 3), samples=3)])
    assert one.execute([row(TOKENS[6:], 6)]) == runner(model).execute([row()])


def test_a_cell_nobody_wrote_fails_loudly(model: Reference) -> None:
    with pytest.raises(RunnerFailed, match="sequence 1 reads KV that nobody wrote"):
        runner(model).execute([row(TOKENS[6:], 6)])


def test_logprobs_report_the_plain_distribution(model: Reference) -> None:
    (picks,) = runner(model).execute([row(sampling=Sampling(temperature=0.5, seed=3, logprobs=4))])
    expected = log_softmax(model.logits(TOKENS)[-1])
    (entry,) = picks.logprobs
    assert entry.chosen.token == picks.tokens[0]
    assert entry.chosen.logprob == pytest.approx(expected[picks.tokens[0]], abs=1e-9)
    assert [t.token for t in entry.top] == np.argsort(-expected)[:4].tolist()
    assert [t.logprob for t in entry.top] == pytest.approx(np.sort(expected)[::-1][:4], abs=1e-9)


def test_no_alternatives_still_report_the_chosen(model: Reference) -> None:
    (picks,) = runner(model).execute([row(sampling=Sampling(logprobs=0))])
    assert picks.logprobs[0].top == ()


# --- the draw

LOGITS = np.log(np.array([0.4, 0.3, 0.2, 0.1]))


def frequencies(sampling: Sampling, draws: int = 4000) -> list[float]:
    counts = np.bincount([draw(LOGITS, sampling, 0, position) for position in range(draws)], minlength=4)
    return (counts / draws).tolist()


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(temperature=1.0), [0.4, 0.3, 0.2, 0.1]),
        (Sampling(temperature=0.5), [16 / 30, 9 / 30, 4 / 30, 1 / 30]),
        (Sampling(temperature=1.0, top_k=2), [4 / 7, 3 / 7, 0, 0]),
        (Sampling(temperature=1.0, top_p=0.65), [4 / 7, 3 / 7, 0, 0]),
        (Sampling(temperature=1.0, top_p=0.0001), [1, 0, 0, 0]),
        (Sampling(temperature=1.0, min_p=0.45), [4 / 9, 3 / 9, 2 / 9, 0]),
        (Sampling(temperature=1.0, min_p=1.0), [1, 0, 0, 0]),
        (Sampling(temperature=1.0, top_k=3, top_p=0.5), [4 / 7, 3 / 7, 0, 0]),
    ],
)
def test_tokens_come_as_often_as_they_should(sampling: Sampling, expected: list[float]) -> None:
    if sampling.top_p == 0.0001:
        assert frequencies(sampling, 50)[1:] == [0, 0, 0]
    assert frequencies(sampling) == pytest.approx(expected, abs=0.03)


def test_noise_is_keyed(model: Reference) -> None:
    flat = np.zeros(10_000)
    one = draw(flat, WARM, 0, 5)
    assert draw(flat, WARM, 0, 5) == one
    assert len({one, draw(flat, WARM, 1, 5), draw(flat, WARM, 0, 6), draw(flat, Sampling(0.8, seed=8), 0, 5)}) == 4


def test_a_candidate_keeps_its_noise_when_others_leave() -> None:
    flat = np.zeros(50)
    for position in range(50):
        whole = draw(flat, WARM, 0, position)
        fewer = flat.copy()
        fewer[[i for i in range(50) if i != whole and i % 3]] = -np.inf
        assert draw(fewer, WARM, 0, position) == whole


def test_greedy_takes_the_first_of_equals() -> None:
    assert draw(np.array([0.0, 1.0, 1.0]), Sampling(), 0, 0) == 1
