"""Prices are read or refused with the remedy; a bill counts each kind of token at its own price."""

from __future__ import annotations

from dataclasses import replace

import pytest

from twostroke.errors import ConfigError
from twostroke.study.prices import MULTIPLES, PRESETS, Prices, bill, break_even_reuses, parse
from twostroke.study.records import Record

PRICES = Prices(input=4, cached=1, write=5, output=10)
CALL = Record("q", "s", "cache", 0, "1", 0, 0.0, 80.0, 480.0, (), 100, "", "stop", 1000, 900)


def test_every_price_is_read() -> None:
    assert parse("input=4,cached=1,write=5,output=10") == PRICES
    assert parse(" output = 10, input=$4 , cached=1,write=5") == PRICES


def test_a_write_costs_what_input_costs_unless_it_is_given() -> None:
    assert parse("input=4,cached=1,output=10").write == 4


def test_a_preset_is_taken_by_name_and_what_is_given_replaces_it() -> None:
    assert parse("deepseek-flash") == PRESETS["deepseek-flash"]
    assert parse("deepseek-flash,output=7") == replace(PRESETS["deepseek-flash"], output=7)


def test_a_preset_of_multiples_follows_the_models_own_input_price() -> None:
    assert parse("anthropic-5m,input=4,output=20") == Prices(4, pytest.approx(0.4), 5, 20)
    assert parse("anthropic-1h,input=4,output=20").write == 8


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no preset is called ''"),
        ("gpt-9", "no preset is called 'gpt-9'; choose one of .*deepseek-flash"),
        ("input=4,hit=1", "'hit' is no price; write it as input="),
        ("input=4,output", "'' is|output is ''"),
        ("input=four", "input is 'four'; give dollars per million"),
        ("input=-1", "input is '-1'"),
        ("input=nan", "input is 'nan'"),
        ("input=1,input=2", "input is given twice"),
        ("input=4", "cached and output missing"),
        ("anthropic-5m", "anthropic-5m needs the model's own prices"),
        ("anthropic-5m,input=3", "output missing"),
    ],
)
def test_bad_prices_are_refused_with_the_remedy(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse(text)


def test_a_bill_prices_each_kind_of_token() -> None:
    made = bill(PRICES, [CALL] * 1000, caching=True)
    assert made is not None
    assert (made.computed, made.cached, made.output) == (0.5, 0.9, 1.0)
    assert made.total == pytest.approx(2.4)
    assert made.without == 5.0
    assert made.saved == pytest.approx(0.52)


def test_without_caching_nothing_is_written_and_nothing_is_saved() -> None:
    made = bill(PRICES, [CALL], caching=False, context_tokens=10_000)
    assert made is not None
    assert made.total == made.without
    assert made.saved == 0


def test_contexts_that_were_read_ahead_are_paid_for() -> None:
    plain, ahead = (bill(PRICES, [CALL], caching=True, context_tokens=tokens) for tokens in (0, 1000))
    assert plain is not None
    assert ahead is not None
    assert ahead.computed - plain.computed == pytest.approx(0.005)


def test_a_failed_call_costs_nothing_and_an_uncounted_one_leaves_no_bill() -> None:
    made = bill(PRICES, [CALL, replace(CALL, error="timed out", prompt_tokens=None)], caching=True)
    assert made is not None
    assert made.calls == 1
    assert bill(PRICES, [CALL, replace(CALL, cached_tokens=None)], caching=True) is None
    assert bill(PRICES, [replace(CALL, cached_tokens=None)], caching=False) is not None
    assert bill(PRICES, [replace(CALL, prompt_tokens=None)], caching=False) is None
    assert bill(PRICES, [], caching=True) is None


@pytest.mark.parametrize(("name", "reads"), [("anthropic-5m", 1), ("anthropic-1h", 2)])
def test_the_providers_own_break_even_is_found(name: str, reads: int) -> None:
    cached, write = MULTIPLES[name]
    assert break_even_reuses(Prices(1, cached, write, 5)) == reads


@pytest.mark.parametrize("prices", [*PRESETS.values(), PRICES, Prices(1, 0.5, 1.5, 1), Prices(0.3, 0.2, 0.4, 1)])
def test_break_even_is_the_first_number_of_reads_at_which_caching_is_cheaper(prices: Prices) -> None:
    reads = break_even_reuses(prices)
    assert reads is not None

    def gain(n: int) -> float:
        return round((n + 1) * prices.input - prices.write - n * prices.cached, 9)

    assert gain(reads) > 0
    assert all(gain(n) <= 0 for n in range(reads))


def test_a_read_that_costs_as_much_as_input_never_pays() -> None:
    assert break_even_reuses(Prices(1, 1, 1.25, 5)) is None
