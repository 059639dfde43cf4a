"""Keys open the door, and namespaces keep tenants apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.errors import Unauthorized
from twostroke.serve.tenants import Tenants

words = st.text(st.characters(codec="utf-8"), max_size=12)


def test_without_keys_everyone_may_enter() -> None:
    assert Tenants().admit(None) == ""
    assert Tenants().admit("Bearer whatever") == ""


def test_a_known_key_enters_in_any_case_of_the_scheme() -> None:
    tenants = Tenants(("one", "two"))
    assert tenants.admit("Bearer two") == "two"
    assert tenants.admit("bearer  one ") == "one"


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic sesame", "sesame", "Bearer sesam", "Bearer sesame 2", "Bearer sesäme"],
)
def test_anything_else_stays_outside_with_a_remedy(header: str | None) -> None:
    with pytest.raises(Unauthorized, match="Authorization: Bearer KEY") as caught:
        Tenants(("sesame", "other")).admit(header)
    assert caught.value.status == 401
    assert "sesame" not in caught.value.message


def test_no_key_and_no_salt_is_the_common_namespace() -> None:
    assert Tenants().namespace("", None) == ""


@given(words, words, words, words)
def test_namespaces_agree_exactly_when_key_and_salt_do(key: str, salt: str, other_key: str, other_salt: str) -> None:
    tenants = Tenants(secret=b"secret")
    same = (key, salt) == (other_key, other_salt)
    assert (tenants.namespace(key, salt) == tenants.namespace(other_key, other_salt)) == same


@given(words.filter(bool), words.filter(bool))
def test_a_border_between_key_and_salt_cannot_move(first: str, second: str) -> None:
    tenants = Tenants(secret=b"secret")
    assert tenants.namespace(first + second, "") != tenants.namespace(first, second)
    assert tenants.namespace("", first) != tenants.namespace(first, "")


def test_a_namespace_tells_nothing_of_key_or_salt_and_differs_by_process() -> None:
    name = Tenants().namespace("key", "salt")
    assert "key" not in name
    assert "salt" not in name
    assert name != Tenants().namespace("key", "salt")


def test_the_secret_is_not_printed() -> None:
    assert "hush" not in repr(Tenants(secret=b"hush"))
