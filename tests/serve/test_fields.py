"""Bodies are read strictly, and what is wrong is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.errors import InvalidParameter
from twostroke.serve import fields
from twostroke.serve.fields import Fields

values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), values))
def test_every_json_object_is_read_as_json_reads_it(value: dict[str, Any]) -> None:
    assert fields.body(json.dumps(value).encode()).values == value


@given(st.binary(max_size=40))
def test_any_bytes_are_an_object_or_a_clear_error(raw: bytes) -> None:
    try:
        found: object = fields.body(raw).values
    except InvalidParameter as error:
        found = error.message
    assert isinstance(found, dict) or "the body" in str(found) or "surrogate" in str(found)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"{'a': 1}", "not valid JSON"),
        (b"[]", "must be a JSON object, not an array"),
        (b'"a"', "not a string"),
        (b"1", "not a number"),
        (b"true", "not a boolean"),
        (b"null", "not null"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b"\xff", "not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'{"a": ' + b"[" * 128 + b"]" * 128 + b"}", "nested too deeply: more than 128 levels"),
        (b'{"a": ' + b"1" * 5000 + b"}", "a number of thousands of digits"),
        (b'{"a": [' + b"[]," * fields.MOST_VALUES + b"[]]}", "commas and brackets"),
    ],
)
def test_what_is_no_object_is_refused(raw: bytes, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        fields.body(raw)


def test_as_deep_as_it_may_be() -> None:
    assert fields.body(b'{"a": ' + b"[" * 127 + b"]" * 127 + b"}").values


def test_a_path_is_joined_only_to_be_shown() -> None:
    """Long keys above many values cost no time."""
    raw = b'{"' + b"k" * 2**20 + rb'": ["\ud83d\ude00"' + b', ""' * 2**17 + rb', "\ud800"]}'
    with pytest.raises(InvalidParameter, match=r"^k{59,60}.*\[131073\] holds") as caught:
        fields.body(raw)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        (rb'{"a": "x\ud800"}', "a"),
        (rb'{"a": [{"b": "\udfff"}]}', r"a\[0\]\.b"),
        (rb'{"a": {"\ud800": 1}}', "a"),
        (rb'{"\ud800": 1}', "the body"),
    ],
)
def test_half_a_surrogate_pair_is_refused_by_path(raw: bytes, where: str) -> None:
    with pytest.raises(InvalidParameter, match=where + " holds the lone surrogate"):
        fields.body(raw)


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert fields.body(rb'{"a": "\ud83d\ude00"}').text("a") == "\N{GRINNING FACE}"


def test_absent_and_null_are_the_same() -> None:
    for read in (Fields({}), Fields({"a": None})):
        assert read.flag("a", True) is True
        assert (read.text("a"), read.integer("a", 0), read.number("a", 0, 1)) == (None, None, None)
        assert (read.object("a"), read.array("a")) == (None, None)


@pytest.mark.parametrize("value", [True, "1", 1.5, -1, 11, [], {}])
def test_integers_are_integers_in_range(value: object) -> None:
    with pytest.raises(InvalidParameter, match=r"p\.a must be an integer of 0 to 10"):
        Fields({"a": value}, "p").integer("a", 0, 10)


def test_a_whole_float_is_an_integer() -> None:
    assert Fields({"a": 3.0}).integer("a", 0) == 3


@pytest.mark.parametrize("value", [True, "0.5", -0.1, 1.1, float("inf"), float("nan"), 10**400, []])
def test_numbers_are_finite_and_in_range(value: object) -> None:
    with pytest.raises(InvalidParameter, match="a must be a number"):
        Fields({"a": value}).number("a", 0, 1)


def test_a_bound_may_be_excluded() -> None:
    assert Fields({"a": 0}).number("a", 0, 1) == 0
    with pytest.raises(InvalidParameter, match="above 0"):
        Fields({"a": 0}).number("a", 0, 1, above=True)


@pytest.mark.parametrize(
    ("read", "value"), [("flag", 1), ("flag", "true"), ("text", 5), ("object", []), ("array", {}), ("array", "a")]
)
def test_other_kinds_are_refused(read: str, value: object) -> None:
    arguments = ("a", True) if read == "flag" else ("a",)
    with pytest.raises(InvalidParameter, match="a must be") as caught:
        getattr(Fields({"a": value}), read)(*arguments)
    assert caught.value.param == "a"


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(InvalidParameter) as caught:
        Fields({"a": ["x" * 1000]}).text("a")
    assert len(caught.value.message) < 150


def test_ids_are_lists_of_integers() -> None:
    assert fields.ids([1, 2])
    assert fields.ids([])
    assert not fields.ids([True])
    assert not fields.ids(["1"])
    assert not fields.ids("12")
