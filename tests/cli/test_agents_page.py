"""The page about agents says what `launch` does."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from twostroke.cli.launch import CLIENTS, Target

PAGE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
TARGET = Target("http://127.0.0.1:8000", "qwen2.5-coder-1.5b", 32768)


def block(language: str) -> str:
    return next(re.finditer(rf"```{language}\n(.*?)```", PAGE, re.DOTALL))[1]


def test_every_agent_is_there_with_how_to_install_it() -> None:
    for name, client in CLIENTS.items():
        assert f"twostroke launch {name}" in PAGE or f"or {name}" in PAGE or f", {name}" in PAGE
        assert f"`{client.install}`" in PAGE


def test_variables_set_by_hand_are_those_that_launch_sets() -> None:
    by_hand = set(re.findall(r"\b([A-Z][A-Z_]+)=", PAGE))
    launched = {name for client in CLIENTS.values() for name in client.launch(TARGET).environ}
    assert by_hand <= launched
    assert {f"ANTHROPIC_DEFAULT_{tier}_MODEL" for tier in ("OPUS", "SONNET", "HAIKU")} <= by_hand


def test_codex_by_hand_is_codex_launched() -> None:
    by_hand = tomllib.loads(block("toml"))
    flags = CLIENTS["codex"].launch(TARGET).flags
    launched = tomllib.loads("\n".join(flag for flag in flags if "=" in flag))
    assert by_hand.pop("model") == TARGET.model
    assert by_hand == launched


def test_opencode_by_hand_is_opencode_launched() -> None:
    by_hand = json.loads(block("json"))
    launched = json.loads(CLIENTS["opencode"].launch(TARGET).environ["OPENCODE_CONFIG_CONTENT"])
    ours, theirs = by_hand["provider"]["twostroke"], launched["provider"]["twostroke"]
    assert (by_hand["model"], by_hand["small_model"]) == (launched["model"], launched["small_model"])
    assert (ours["npm"], ours["options"]["baseURL"]) == (theirs["npm"], theirs["options"]["baseURL"])
    assert ours["models"][TARGET.model]["limit"] == theirs["models"][TARGET.model]["limit"]
