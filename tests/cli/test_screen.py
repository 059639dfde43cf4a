"""What a person sees while waiting, and how Ctrl-C is taken."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys

import pytest

from twostroke.cli.screen import Interrupt, progress, start_logging


class Terminal(io.StringIO):
    """A stderr that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_without_a_terminal_each_thing_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as show:
        for done in range(5):
            show("fetching", done, 4_000_000)
        show("thinking", 1, 0)
    assert capsys.readouterr().err == "fetching: 4 MB …\nthinking …\n"


def test_on_a_terminal_there_are_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress() as show:
        show("fetching", 0, 1000)
        show("fetching", 1000, 1000)
        show("loading", 1, 0)
    assert "fetching" in terminal.getvalue()
    assert "loading" in terminal.getvalue()


def test_the_first_ctrl_c_is_a_wish_and_the_second_an_end() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        assert not interrupt.wished
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.wished
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_our_log_has_its_level_and_others_keep_quiet() -> None:
    ours = logging.getLogger("twostroke")
    before = ours.level
    try:
        start_logging("debug")
        assert ours.getEffectiveLevel() == logging.DEBUG
        assert logging.getLogger("uvicorn").getEffectiveLevel() == logging.WARNING
    finally:
        ours.setLevel(before)
