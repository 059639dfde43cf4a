"""Options come from settings, and settings from options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from twostroke.cli.options import with_settings
from twostroke.config import Settings
from twostroke.errors import ConfigError


def run(
    *arguments: str, groups: tuple[str, ...] = ("Server", "Switches", "Sampling"), model: str = ""
) -> dict[str, Any]:
    """What a command with these options receives."""
    app, heard = typer.Typer(), {}

    @app.command()
    @with_settings(*groups, model=model)
    def command(
        settings: Settings,
        word: Annotated[str, typer.Option("--word")] = "none",
        loud: Annotated[bool, typer.Option("--loud")] = False,
    ) -> None:
        """Help of its own."""
        heard.update(settings=settings, word=word, loud=loud)

    app(args=list(arguments), standalone_mode=False)
    return heard


def test_without_options_the_settings_are_the_defaults() -> None:
    assert run() == {"settings": Settings(), "word": "none", "loud": False}


def test_options_of_all_kinds() -> None:
    heard = run(
        "--port", "9", "--no-prefix-cache", "--speculate", "ngram", "--temperature", "0.5", "--stop", "a,b",
        "--stop", "c", "--api-key", "k", "--max-body", "1MiB", "--loud", "--word", "x",
    )  # fmt: skip
    settings = heard["settings"]
    assert (settings.port, settings.prefix_cache, settings.speculate) == (9, False, "ngram")
    assert (settings.temperature, settings.stop, settings.api_key) == (0.5, ("a,b", "c"), ("k",))
    assert (settings.max_body, heard["loud"], heard["word"]) == (2**20, True, "x")


def test_the_model_comes_first_where_a_command_takes_one() -> None:
    assert run("some.gguf", model="optional")["settings"].model == "some.gguf"
    assert run(model="optional")["settings"].model == Settings().model
    assert run("some.gguf", model="required")["settings"].model == "some.gguf"


def test_environment_and_file_stand_behind_the_flags(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_text("port = 1\nmax-queue = 2\n", encoding="utf-8")
    monkeypatch.setenv("TWOSTROKE_PORT", "3")
    monkeypatch.setenv("TWOSTROKE_SPECULATE", "off")
    settings = run("--config", str(file), "--speculate", "ngram")["settings"]
    assert (settings.port, settings.max_queue, settings.speculate) == (3, 2, "ngram")


def test_a_switch_in_the_environment_can_be_overruled_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOSTROKE_PREFIX_CACHE", "off")
    assert run()["settings"].prefix_cache is False
    assert run("--prefix-cache")["settings"].prefix_cache is True


def test_a_wrong_value_is_our_error_in_our_words() -> None:
    with pytest.raises(ConfigError, match="--port is 'many'; give a whole number"):
        run("--port", "many")


def test_a_command_has_only_the_options_it_asked_for() -> None:
    with pytest.raises(Exception, match="No such option"):
        run("--port", "1", groups=("Sampling",))
