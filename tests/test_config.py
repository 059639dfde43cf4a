"""Settings: one place per setting, three ways to name it, and no way to misspell it silently."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twostroke.config import OPTIONS, PREFIX, Settings, load, size
from twostroke.errors import ConfigError


def write(folder: Path, text: str) -> Path:
    file = folder / "twostroke.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_defaults_are_valid_and_what_an_empty_load_gives() -> None:
    assert load() == Settings()
    assert Settings().host == "127.0.0.1"
    assert Settings().port == 8000
    assert Settings().prefix_cache is True


def test_every_setting_says_what_it_is() -> None:
    for option in OPTIONS.values():
        assert option.help.endswith("."), option.name
        assert option.group, option.name
        assert option.flag == "--" + option.name.replace("_", "-")
        assert option.variable == PREFIX + option.name.upper()


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    file = write(tmp_path, 'port = 1\nhost = "10.0.0.1"\nmax-queue = 7\n')
    environ = {"TWOSTROKE_PORT": "2", "TWOSTROKE_HOST": "10.0.0.2"}
    chosen = load({"port": 3}, environ, file)
    assert (chosen.port, chosen.host, chosen.max_queue) == (3, "10.0.0.2", 7)
    assert chosen.max_sequences == Settings().max_sequences


def test_the_environment_may_name_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "port = 4\n")
    assert load({}, {"TWOSTROKE_CONFIG": str(file)}).port == 4


@pytest.mark.parametrize(
    ("variable", "raw", "expected"),
    [
        ("PREFIX_CACHE", "no", False),
        ("PREFIX_CACHE", "1", True),
        ("KV_MEMORY", "2GiB", 2 * 2**30),
        ("KV_MEMORY", "1.5g", 3 * 2**29),
        ("STEP_MS", "75", 75.0),
        ("API_KEY", "a,b", ("a", "b")),
        ("SERVED_MODEL_NAME", "a,b,*", ("a", "b", "*")),
        ("SEED", "-3", -3),
        ("DRAFT", "smollm2-135m", "smollm2-135m"),
    ],
)
def test_environment_text_becomes_values(variable: str, raw: str, expected: object) -> None:
    assert getattr(load({}, {PREFIX + variable: raw}), variable.lower()) == expected


def test_one_word_is_a_list_of_one_and_the_star_is_no_name() -> None:
    assert Settings(served_model_name="a").served_model_name == ("a",)  # type: ignore[arg-type]
    chosen = load({"served_model_name": ["*", "b", "c"]})
    assert chosen.served_model_name == ("*", "b", "c")
    assert chosen.model_names == ("b", "c")


def test_variables_of_others_and_empty_ones_are_left_alone() -> None:
    assert load({}, {"PORT": "1", "TWOSTROKE_HOME": "/tmp", "TWOSTROKE_PORT": ""}) == Settings()


def test_a_file_may_use_dashes_and_lists(tmp_path: Path) -> None:
    chosen = load({}, {}, write(tmp_path, 'stop = ["a", "b"]\ndraft-tokens = 3\nkv_memory = "64MiB"\n'))
    assert (chosen.stop, chosen.draft_tokens, chosen.kv_memory) == (("a", "b"), 3, 64 * 2**20)


@pytest.mark.parametrize(
    ("flags", "environ", "toml", "named"),
    [
        ({"prt": 1}, {}, "", ["--prt", "port"]),
        ({}, {"TWOSTROKE_PROT": "1"}, "", ["TWOSTROKE_PROT", "TWOSTROKE_PORT"]),
        ({}, {}, "draft_token = 1\n", ["draft_token", "draft_tokens"]),
        ({}, {}, "[server]\nport = 1\n", ["server"]),
    ],
)
def test_unknown_names_are_refused_with_their_neighbours(
    tmp_path: Path, flags: dict[str, object], environ: dict[str, str], toml: str, named: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(flags, environ, write(tmp_path, toml) if toml else None)
    for word in named:
        assert word in caught.value.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", -1),
        ("port", 65536),
        ("port", True),
        ("port", 1.5),
        ("port", "http"),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("temperature", -0.1),
        ("top_p", 0),
        ("top_p", 1.1),
        ("min_p", 2),
        ("top_k", -1),
        ("max_tokens", 0),
        ("max_tokens", -5),
        ("step_ms", 0),
        ("draft_tokens", 65),
        ("max_queue", 0),
        ("kv_memory", "lots"),
        ("kv_memory", 10),
        ("kv_type", "f8"),
        ("log_level", "loud"),
        ("prefix_cache", "perhaps"),
        ("prefix_cache", 1),
        ("model", ""),
        ("stop", ["a", ""]),
        ("stop", 5),
        ("host", None),
    ],
)
def test_values_out_of_range_are_refused_by_name_value_and_remedy(name: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        load({name: value}) if isinstance(value, str) and value else Settings(**{name: value})
    assert name.replace("_", "-") in caught.value.message.replace("_", "-")
    assert "give" in caught.value.message
    assert caught.value.param == name


def test_a_wrong_value_names_where_it_came_from(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="TWOSTROKE_PORT is 'x'"):
        load({}, {"TWOSTROKE_PORT": "x"})
    file = write(tmp_path, 'port = "x"\n')
    with pytest.raises(ConfigError, match=r"twostroke\.toml: port is 'x'"):
        load({}, {}, file)


@pytest.mark.parametrize("content", ["port = ", "= 1", "port = 1\nport = 2\n"])
def test_a_broken_file_is_named(tmp_path: Path, content: str) -> None:
    with pytest.raises(ConfigError, match="not valid TOML"):
        load({}, {}, write(tmp_path, content))


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "binary.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load({}, {}, file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load({}, {}, tmp_path / "absent.toml")


def test_flags_that_were_not_given_do_not_count() -> None:
    assert load({"port": None, "stop": [], "api_key": ()}, {"TWOSTROKE_PORT": "5"}).port == 5


def test_a_list_in_code_is_a_list() -> None:
    assert Settings(stop=["a", "b"]).stop == ("a", "b")  # type: ignore[arg-type]


def test_a_stop_flag_may_hold_a_comma() -> None:
    assert load({"stop": ["a,b"]}).stop == ("a,b",)


@given(st.integers(0, 2**50))
def test_sizes_are_bytes_when_nothing_else_is_said(count: int) -> None:
    assert size(str(count)) == count
    assert size(f"{count}KiB") == size(f"{count} k") == count * 1024


@given(st.text(max_size=8))
def test_any_text_is_a_size_or_a_clear_error(text: str) -> None:
    try:
        found: object = load({}, {"TWOSTROKE_KV_MEMORY": text}).kv_memory
    except ConfigError as error:
        found = error.message
    assert found is None or (isinstance(found, int) and found >= 2**20) or "2GiB" in str(found)
