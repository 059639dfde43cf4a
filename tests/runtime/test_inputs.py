"""The arrays of a step say exactly what its rows say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twostroke.runtime.inputs import draws, lay_out
from twostroke.types import Row, Sampling

GREEDY = Sampling()


@st.composite
def some_rows(draw: st.DrawFn) -> list[Row]:
    rows = []
    for sequence in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, 40))
        tokens = tuple(draw(st.lists(st.integers(0, 999), min_size=1, max_size=9)))
        samples = draw(st.integers(0, len(tokens)))
        blocks = tuple(range(100 * sequence, 100 * sequence + (start + len(tokens) + 15) // 16))
        seed = draw(st.integers(0, 2**64 - 1))
        sampling = Sampling(temperature=0.5, top_k=3, top_p=0.9, min_p=0.1, seed=seed)
        rows.append(Row(sequence, start, tokens, max(0, samples - 1), samples, blocks, sampling, choice=sequence))
    return rows


@given(some_rows())
def test_every_token_stands_at_its_position_in_its_run(rows: list[Row]) -> None:
    inputs = lay_out(rows)
    for i, row in enumerate(rows):
        begin, end = inputs.runs[i], inputs.runs[i + 1]
        assert inputs.tokens[begin:end].tolist() == list(row.tokens)
        assert inputs.positions[begin:end].tolist() == list(range(row.start, row.start + len(row.tokens)))
        assert inputs.blocks[inputs.tables[i] : inputs.tables[i + 1]].tolist() == list(row.blocks)
    assert inputs.runs[-1] == len(inputs.tokens) == len(inputs.positions)
    assert inputs.tables[-1] == len(inputs.blocks)


@given(some_rows())
def test_the_last_rows_of_each_run_are_sampled(rows: list[Row]) -> None:
    inputs = lay_out(rows)
    expected = [int(inputs.runs[i + 1]) - row.samples + j for i, row in enumerate(rows) for j in range(row.samples)]
    assert inputs.samples.tolist() == expected


@given(some_rows())
def test_a_choice_is_keyed_by_the_position_it_fills(rows: list[Row]) -> None:
    inputs, keys = lay_out(rows), draws(rows)
    assert inputs.chosen.tolist() == [int(inputs.positions[i]) + 1 for i in inputs.samples]
    assert len(keys.seed) == len(inputs.samples)
    sampled = [row for row in rows for _ in range(row.samples)]
    assert keys.seed.tolist() == [row.sampling.seed for row in sampled]
    assert keys.choice.tolist() == [row.choice for row in sampled]


def test_negative_and_large_seeds_wrap_to_64_bits() -> None:
    row = Row(0, 0, (1,), 0, 1, (0,), Sampling(temperature=1.0, seed=-1))
    assert draws([row]).seed.tolist() == [2**64 - 1]


def test_a_prefill_chunk_that_stops_short_samples_nothing() -> None:
    row = Row(0, 0, (1, 2, 3), 0, 0, (0,), GREEDY)
    assert lay_out([row]).samples.tolist() == []
    assert draws([row]).temperature.shape == (0,)
