"""A wrong drafter is told of before a model is looked for."""

from __future__ import annotations

import pytest

from twostroke.assemble import open_model
from twostroke.assemble.judge import judge, judge_drafter
from twostroke.cli.main import execute
from twostroke.config import Settings
from twostroke.errors import ConfigError

NOWHERE = "/nowhere/there-is-no.gguf"


def test_an_unknown_drafter_lists_the_known_ones_before_the_file_is_looked_for() -> None:
    with pytest.raises(ConfigError, match=r"unknown drafter 'magic'; choose one of off, ngram, suffix") as caught:
        open_model(Settings(model=NOWHERE, speculate="magic"))
    assert caught.value.param == "speculate"


def test_the_synthetic_drafter_is_no_choice_at_the_start() -> None:
    with pytest.raises(ConfigError, match="unknown drafter 'synthetic'"):
        judge(Settings(speculate="synthetic"))


def test_a_draft_model_can_be_named_only_where_one_is_given() -> None:
    judge(Settings(speculate="draft", draft="some-model"))
    with pytest.raises(ConfigError, match="a draft model is given with --draft"):
        judge(Settings(speculate="draft"))
    judge_drafter("mine", ["mine"])


@pytest.mark.parametrize("command", [["run", NOWHERE, "hi"], ["chat", NOWHERE], ["serve", NOWHERE, "--port", "0"]])
def test_the_command_line_fails_at_once(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert execute([*command, "--speculate", "magic"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: unknown drafter 'magic'")
    assert said.count("\n") == 1
