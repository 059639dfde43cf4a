"""What a person chose: one frozen `Settings`, from which flags, environment and file keys are all generated.

A field carries its help, range and unit in its metadata, so a setting exists in exactly one place.  A flag wins over
`TWOSTROKE_*`, which wins over the TOML file, which wins over the default.  A name nobody knows is an error that lists
its nearest neighbours, never ignored.  Nothing here knows what a setting is used for.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from twostroke.errors import ConfigError

PREFIX = "TWOSTROKE_"
NOT_SETTINGS = frozenset({"TWOSTROKE_CONFIG", "TWOSTROKE_HOME"})  # read elsewhere
ANY_MODEL = "*"  # a served name that stands for all
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}

Value = str | int | float | bool | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Option:
    """One setting as a person meets it: its name, kind, default, help, and the values it takes."""

    name: str
    kind: type[Any]  # str, int, float, bool, or tuple for a list of words
    optional: bool  # None is a value: "decide for me"
    default: Value
    help: str
    low: float | None = None
    high: float | None = None
    above: float | None = None  # an exclusive lower bound
    choices: tuple[str, ...] = ()
    is_size: bool = False  # an int that may be written "2GiB"
    unit: str = ""
    group: str = ""

    @property
    def flag(self) -> str:
        """The command line's spelling, `--draft-tokens`."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment's spelling, `TWOSTROKE_DRAFT_TOKENS`."""
        return PREFIX + self.name.upper()

    @property
    def range(self) -> str:
        """The accepted values in words, empty where anything goes."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.above is not None:
            return f"above {self.above:g}" + (f", at most {self.high:g}" if self.high is not None else "")
        if self.low is not None and self.high is not None:
            return f"{self.low:g} to {self.high:g}"
        if self.low is None:
            return ""
        return f"at least {written(int(self.low)) if self.is_size else format(self.low, 'g')}"


def setting(default: Value, help: str, **extra: Any) -> Any:
    """A field of `Settings` with what a person must know of it; `extra` are fields of `Option`."""
    return field(default=default, metadata={"help": help, **extra})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be chosen when an engine or a server starts."""

    model: str = setting("qwen2.5-coder-0.5b", "A known model, owner/repo:file.gguf, or a path.", group="Model")
    served_model_name: tuple[str, ...] = setting(
        (),
        "A name clients may use; give several if needed, and * for any. The first is preferred; the model's own "
        "if unset.",
        group="Model",
    )
    mirrors: bool = setting(True, "Fetch from mirrors where the model hub is out of reach.", group="Model")

    host: str = setting("127.0.0.1", "The address to listen on.", group="Server")
    port: int = setting(8000, "The port to listen on; 0 takes a free one.", low=0, high=65535, group="Server")
    api_key: tuple[str, ...] = setting(
        (), "A key clients must send; give several for several tenants, who then share no cache.", group="Server"
    )
    max_queue: int = setting(256, "Answers that may wait before the server says 429.", low=1, group="Server")
    max_body: int = setting(32 * 2**20, "The largest request body read.", low=1024, is_size=True, group="Server")
    strict: bool = setting(
        False, "Refuse request fields that nobody here knows; else they are logged and ignored.", group="Server"
    )
    drain_s: float = setting(
        30.0, "How long running answers may take to finish after Ctrl-C.", low=0, unit="seconds", group="Server"
    )
    log_level: str = setting(
        "info", "How much is logged.", choices=("debug", "info", "warning", "error"), group="Server"
    )

    prefix_cache: bool = setting(True, "Reuse what earlier prompts and answers computed.", group="Switches")
    speculate: str = setting("auto", "Who guesses the next tokens: off, ngram, suffix, auto, ….", group="Switches")
    draft_tokens: int = setting(
        16, "Guesses verified in one step, at most.", low=0, high=64, unit="tokens", group="Switches"
    )
    draft: str | None = setting(None, "A smaller model of the same vocabulary that guesses.", group="Switches")
    draft_memory: int | None = setting(
        None,
        "KV memory of the draft model, on top of --kv-memory; if unset, for as many tokens as the target has.",
        low=0,
        is_size=True,
        group="Switches",
    )

    threads: int | None = setting(
        None, "Threads that compute; the physical cores if unset.", low=1, high=1024, group="Engine"
    )
    context: int | None = setting(
        None,
        "Tokens a prompt and its answer may span; unset, as many as the model allows and a share of free memory holds; "
        "0, as many as the model allows.",
        low=0,
        unit="tokens",
        group="Engine",
    )
    kv_memory: int | None = setting(
        None, "Memory for KV, such as 2GiB; a share of free memory if unset.", low=2**20, is_size=True, group="Engine"
    )
    kv_type: str = setting("q16", "KV as integers of 16 bits, or of 8.", choices=("q16", "q8"), group="Engine")
    step_tokens: int = setting(
        512, "Positions computed in one step, at most.", low=1, high=65536, unit="tokens", group="Engine"
    )
    step_ms: float = setting(
        150.0, "A prompt is read in chunks so small that running answers wait no longer.", above=0, unit="milliseconds",
        group="Engine",
    )  # fmt: skip
    max_sequences: int = setting(16, "Answers written at the same time.", low=1, high=1024, group="Engine")
    calibrate: bool = setting(True, "Measure this machine once per model, in seconds, at start.", group="Engine")

    temperature: float | None = setting(
        None, "Where a request names none: 0 is greedy; unset, 1 over HTTP and 0 elsewhere.", low=0, high=100,
        group="Sampling",
    )  # fmt: skip
    top_k: int = setting(0, "Sample among the k likeliest tokens; 0 is all.", low=0, group="Sampling")
    top_p: float = setting(
        1.0, "Sample among the likeliest tokens that make up this probability.", above=0, high=1, group="Sampling"
    )
    min_p: float = setting(
        0.0, "Drop tokens less likely than this share of the likeliest.", low=0, high=1, group="Sampling"
    )
    seed: int | None = setting(None, "Makes sampling repeatable; a random one per request if unset.", group="Sampling")
    max_tokens: int | None = setting(
        None, "Tokens an answer may have; up to the context if unset.", low=1, unit="tokens", group="Sampling"
    )
    stop: tuple[str, ...] = setting((), "Text that ends an answer; give several if needed.", group="Sampling")

    def __post_init__(self) -> None:
        for option in OPTIONS.values():
            object.__setattr__(self, option.name, check(option, getattr(self, option.name), option.name))

    @property
    def model_names(self) -> tuple[str, ...]:
        """The chosen names without the `*`, which is none."""
        return tuple(name for name in self.served_model_name if name != ANY_MODEL)


def _option(name: str, hint: Any, default: Any, metadata: Mapping[str, Any]) -> Option:
    optional = get_origin(hint) in (Union, UnionType)
    plain = next(t for t in get_args(hint) if t is not type(None)) if optional else hint
    return Option(name, get_origin(plain) or plain, optional, None if default is MISSING else default, **metadata)


OPTIONS: Mapping[str, Option] = {
    f.name: _option(f.name, get_type_hints(Settings)[f.name], f.default, f.metadata) for f in fields(Settings)
}


def load(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Settings:
    """Settings from a command line's flags, an environment and a TOML file, the first of them winning.

    A flag that is None was not given.  Raises `ConfigError` naming the place, the value and the remedy.
    """
    chosen: dict[str, Value] = {}
    environ = environ or {}
    if file is None and environ.get("TWOSTROKE_CONFIG"):
        file = Path(environ["TWOSTROKE_CONFIG"])
    if file is not None:
        chosen |= from_file(file)
    chosen |= from_environment(environ)
    chosen |= from_flags(flags or {})
    return Settings(**chosen)  # type: ignore[arg-type]


def from_flags(flags: Mapping[str, Any]) -> dict[str, Value]:
    """The flags that were given, checked; keys are field names."""
    given = {name: value for name, value in flags.items() if value is not None and value != [] and value != ()}
    return {name: _read(_known(name, "--", OPTIONS), value, "--" + _dashed(name)) for name, value in given.items()}


def from_environment(environ: Mapping[str, str]) -> dict[str, Value]:
    """The settings an environment names; an empty variable counts as absent."""
    known = {option.variable: option for option in OPTIONS.values()}
    given = {k: v for k, v in environ.items() if k.startswith(PREFIX) and k not in NOT_SETTINGS and v != ""}
    return {_known(k, "", known).name: _read(known[k], v, k) for k, v in given.items()}


def from_file(path: Path) -> dict[str, Value]:
    """The settings a TOML file names, `draft-tokens` or `draft_tokens`."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; give --config a readable TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    plain = {key.replace("-", "_"): value for key, value in table.items()}
    return {k: _read(_known(k, f"{path}: ", OPTIONS), v, f"{path}: {k}") for k, v in plain.items()}


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _known(name: str, place: str, known: Mapping[str, Option]) -> Option:
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=3, cutoff=0.6)
    remedy = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(known))}"
    raise ConfigError(f"unknown setting {place}{name}; {remedy}", param=name)


def _read(option: Option, raw: Any, place: str) -> Value:
    """Text becomes the option's kind; whatever then does not fit is refused with its place."""
    if option.kind is tuple:
        return check(option, _listed(raw, place), place)
    if isinstance(raw, str) and option.kind is not str:
        raw = _parse(option, raw.strip(), place)
    return check(option, raw, place)


def _listed(raw: Any, place: str) -> Any:
    """A list of words; in the environment, where there are no lists, commas part them."""
    if isinstance(raw, str):
        return tuple(raw.split(",")) if place.startswith(PREFIX) else (raw,)
    return tuple(raw) if isinstance(raw, list | tuple) else raw


def _parse(option: Option, raw: str, place: str) -> Value:
    try:
        if option.kind is bool:
            return _WORDS[raw.lower()]
        if option.is_size:
            return size(raw)
        return int(raw) if option.kind is int else float(raw)
    except (KeyError, ValueError):
        raise _wrong(option, raw, place) from None


def size(text: str) -> int:
    """Bytes of "2GiB", "512M", "1.5g" or "1048576"; units are powers of 1024.  Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a size: {text!r}")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def written(count: int) -> str:
    """Bytes in the largest unit that divides them, as `size` reads them."""
    unit = next((u for u in ("T", "G", "M", "K") if count and count % _UNITS[u] == 0), "")
    return f"{count // _UNITS[unit]}{unit}iB" if unit else str(count)


def check(option: Option, value: Any, place: str) -> Value:
    """The value itself when it is of the option's kind and in its range; raises `ConfigError` otherwise."""
    if value is None and option.optional:
        return None
    if option.kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if option.kind is tuple and isinstance(value, list | str):
        value = (value,) if isinstance(value, str) else tuple(value)
    if not _fits(option, value):
        raise _wrong(option, value, place)
    return value  # type: ignore[no-any-return]


def _fits(option: Option, value: Any) -> bool:
    if not isinstance(value, option.kind) or (isinstance(value, bool) and option.kind is not bool):
        return False
    if option.kind is tuple:
        return all(isinstance(item, str) and item for item in value)
    if option.kind is str:
        return bool(value) and (not option.choices or value in option.choices)
    if option.kind is bool:
        return True
    return math.isfinite(value) and _in_range(option, value)


def _in_range(option: Option, value: float) -> bool:
    low = option.low is None or value >= option.low
    above = option.above is None or value > option.above
    return low and above and (option.high is None or value <= option.high)


def _wrong(option: Option, value: Any, place: str) -> ConfigError:
    kinds = {str: "a word", int: "a whole number", float: "a number", bool: "true or false", tuple: "a list of words"}
    wanted = "a size such as 512MiB or 2GiB" if option.is_size else kinds[option.kind]
    wanted = option.range if option.choices else f"{wanted}, {option.range}" if option.range else wanted
    return ConfigError(f"{place} is {value!r}; give {wanted}", param=option.name)
