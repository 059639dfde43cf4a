"""The command line: which commands there are, and how failures are told.

A failure is one line that begins with `error:` and says what to do; exit code 2 when the command was wrong, 1 when it
failed.  No traceback reaches a person unless the log level is debug.  Whatever is heavy is imported by the command that
needs it.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from twostroke.cli.options import with_settings
from twostroke.cli.screen import say
from twostroke.config import Settings, load
from twostroke.errors import ConfigError, RequestError, TwostrokeError

ENGINE = ("Switches", "Engine", "Sampling")
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """An LLM serving engine in which prefix caching and speculative decoding stack, exactly."""


@app.command()
@with_settings("Model", "Server", *ENGINE, model="optional")
def serve(settings: Settings) -> None:
    """Serve a model over HTTP, as the APIs of OpenAI and Anthropic do."""
    from twostroke.cli.serve import serve

    serve(settings)


@app.command()
@with_settings(*ENGINE, names=("mirrors", "log_level"), model="required")
def run(
    settings: Settings,
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help='The question; "-" reads it from stdin.')],
    raw: Annotated[bool, typer.Option("--raw", help="Continue the text as it is, without a chat template.")] = False,
    as_json: AsJson = False,
) -> int:
    """Answer one prompt and leave."""
    from twostroke.cli.answer import run

    return run(settings, prompt, raw=raw, as_json=as_json)


@app.command()
@with_settings(*ENGINE, names=("mirrors", "log_level"), model="required")
def chat(
    settings: Settings,
    system: Annotated[str | None, typer.Option("--system", metavar="TEXT", help="The system message.")] = None,
) -> None:
    """Talk with a model on the terminal."""
    from twostroke.cli.answer import chat

    chat(settings, system)


@app.command()
@with_settings(names=("mirrors",), model="required")
def pull(settings: Settings) -> None:
    """Fetch a model, verify it and print its path."""
    from twostroke.catalog import resolve
    from twostroke.cli.screen import progress

    with progress() as show:
        path = resolve(
            settings.model, progress=lambda done, total: show("fetching", done, total), mirrors=settings.mirrors
        )
    print(path)


@app.command()
@with_settings("Engine", names=("mirrors", "draft"), model="required")
def calibrate(settings: Settings, as_json: AsJson = False) -> None:
    """Measure what steps of a model cost on this machine, and remember it."""
    from twostroke.cli.calibrate import measured, shown

    print(shown(measured(settings), as_json=as_json))


@app.command()
def whatif(
    alpha: Annotated[float, typer.Option(help="Probability that a draft is accepted, 0 to 1.")],
    cost: Annotated[float | None, typer.Option(help="Time to make a draft, in plain decode steps.")] = None,
    verify: Annotated[float | None, typer.Option(help="Time to verify a draft, in plain decode steps.")] = None,
    draft_tokens: Annotated[int | None, typer.Option(help="Drafts a step; the best number if left out.")] = None,
    model: Annotated[
        str | None, typer.Option("--measured", metavar="MODEL", help="Measure what is not given with this model.")
    ] = None,
    draft: Annotated[str | None, typer.Option(metavar="MODEL", help="A model that guesses, for --measured.")] = None,
    as_json: AsJson = False,
) -> None:
    """What speculation would gain."""
    from twostroke.cli.whatif import Terms, whatif

    terms = Terms(cost or 0.0, verify or 0.0)
    if model:
        from twostroke.cli.calibrate import measured

        terms = Terms.of(measured(load({"model": model, "draft": draft}, os.environ)), draft_tokens, cost, verify)
    print(whatif(alpha, terms, draft_tokens, as_json=as_json))


@app.command()
@with_settings(names=("mirrors",), model="required")
def shortlist(
    settings: Settings,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILES]", help="Texts to count; Python's own sources if none.", show_default=False),
    ] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Tokens of the head; several sizes if left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """How much of a text a draft model could say with a shorter output head."""
    from twostroke.cli.shortlist import measured, shown

    print(shown(measured(settings, files or [], size), as_json=as_json))


@app.command(context_settings={"allow_interspersed_args": False})
def launch(
    client: Annotated[str, typer.Argument(metavar="claude|codex|opencode|aider", help="The coding agent.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGS]", help="Passed to the agent as they are.", show_default=False)
    ] = None,
    url: Annotated[str, typer.Option(help="Where the server is.")] = "http://127.0.0.1:8000",
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="A served name; the preferred one if left out.")
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The server's key; TWOSTROKE_API_KEY if left out.")
    ] = None,
    printed: Annotated[bool, typer.Option("--print", help="Print the command in place of running it.")] = False,
) -> None:
    """Run a coding agent against a running server.  Options come before the agent's name."""
    from twostroke.cli.launch import client_of, find, run, shown

    agent = client_of(client)
    key = api_key or os.environ.get("TWOSTROKE_API_KEY", "").partition(",")[0] or None
    target = find(url, key, model)
    plan = agent.launch(target)
    if printed:
        print(shown(agent, plan, target.key, arguments or []))
    else:
        run(agent, plan, arguments or [])


@app.command()
def version() -> None:
    """Print the version."""
    from twostroke.cli.version import own_version

    print(own_version())


def main() -> NoReturn:
    """The entry point of `twostroke` and `python -m twostroke`."""
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    try:
        code = app(args=list(arguments), prog_name="twostroke", standalone_mode=False)
    except TwostrokeError as problem:
        return _failed(problem.message, 2 if isinstance(problem, ConfigError | RequestError) else 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read stdout has left
        return 1
    except OSError as problem:
        return _failed(f"{problem.strerror or problem}{f': {problem.filename}' if problem.filename else ''}", 1)
    except Exception as problem:
        return _told_by_typer(problem)
    return code if isinstance(code, int) else 0


def _told_by_typer(problem: Any) -> int:
    """A wrong command line, or something nobody foresaw."""
    if hasattr(problem, "format_message"):
        if not problem.format_message():  # the help was shown instead
            return 2
        context = getattr(problem, "ctx", None)
        command = context.command_path if context else "twostroke"
        return _failed(f"{problem.format_message()} See `{command} --help`.", 2)
    if isinstance(problem, typer.Abort):
        return 130
    if logging.getLogger("twostroke").isEnabledFor(logging.DEBUG):
        traceback.print_exception(problem)
    return _failed(f"{type(problem).__name__}: {problem}; this is a fault of ours, --log-level debug shows where", 1)


def _failed(message: str, code: int) -> int:
    say(f"error: {' '.join(message.split())}")
    return code
