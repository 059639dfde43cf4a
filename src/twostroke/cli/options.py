"""Command-line options made from the fields of `Settings`: a setting appears in `--help` by existing.

A decorated command receives one `settings` value in place of the options, read from flags, environment and file.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from twostroke.config import OPTIONS, Option, load, written

Command = Callable[..., Any]
CONFIG = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="A TOML file with settings, keys as the flags.", show_default=False),
]


def with_settings(*groups: str, names: Iterable[str] = (), model: str = "") -> Callable[[Command], Command]:
    """Give a command the settings of whole `groups` and single `names` as options.

    `model` is "required" or "optional" to take the model as the first argument, "" for none.
    """
    chosen = [o for o in OPTIONS.values() if (o.group in groups and o.name != "model") or o.name in names]

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters
        kept = [parameter for name, parameter in own.items() if name != "settings"]

        def run(**given: Any) -> Any:
            flags = {option.name: given.pop(option.name) for option in chosen}
            if model:
                flags["model"] = given.pop("model")
            settings = load(flags, os.environ, given.pop("config"))
            return command(settings=settings, **given)

        first = [_parameter("model", _model(model), ... if model == "required" else None)] if model else []
        options = [_parameter(option.name, _flag(option), None) for option in chosen]
        parameters = [*first, *kept, *options, _parameter("config", CONFIG, None)]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(_ordered(parameters))  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    absent = inspect.Parameter.empty if default is ... else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=absent, annotation=annotation)


def _ordered(parameters: Iterable[inspect.Parameter]) -> list[inspect.Parameter]:
    return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]


def _model(need: str) -> Any:
    help = OPTIONS["model"].help
    if need == "required":
        return Annotated[str, typer.Argument(metavar="MODEL", help=help)]
    default = str(OPTIONS["model"].default)
    return Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help=f"{help} Default: {default}.", show_default=False)
    ]


def _flag(option: Option) -> Any:
    """The typer option of a setting; text stays text, so that flag, environment and file are read by one rule."""
    shape: Any = {"help": _help(option), "show_default": False, "rich_help_panel": option.group}
    if option.kind is bool:
        return Annotated[bool | None, typer.Option(f"{option.flag}/--no-{option.flag[2:]}", **shape)]
    if option.kind is tuple:
        return Annotated[list[str] | None, typer.Option(option.flag, metavar="TEXT", **shape)]
    return Annotated[str | None, typer.Option(option.flag, metavar=_metavar(option), **shape)]


def _metavar(option: Option) -> str:
    if option.choices:
        return "|".join(option.choices)
    return "SIZE" if option.is_size else {str: "NAME", int: "N", float: "X"}[option.kind]


def _help(option: Option) -> str:
    parts = [option.help]
    if option.range and not option.choices:
        parts.append(f"{option.range.capitalize()}{' ' + option.unit if option.unit else ''}.")
    if option.default not in (None, ()):
        parts.append(f"Default: {_shown(option)}.")
    return " ".join(parts)


def _shown(option: Option) -> str:
    if option.is_size:
        return written(int(str(option.default)))
    if isinstance(option.default, bool):
        return "on" if option.default else "off"
    return f"{option.default:g}" if isinstance(option.default, float) else str(option.default)
