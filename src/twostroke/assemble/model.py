"""A model file, found, read and packed; with the smaller model that drafts for it, where one was chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from twostroke.assemble.judge import judge
from twostroke.assemble.memory import positions_held
from twostroke.catalog import resolve
from twostroke.config import Settings
from twostroke.errors import ConfigError
from twostroke.runtime.models.config import ModelConfig, from_file
from twostroke.runtime.models.decoder import Weights
from twostroke.runtime.weights.gguf import read
from twostroke.runtime.weights.load import content_version, load_weights
from twostroke.text.codec import Codec
from twostroke.text.template import ChatTemplate
from twostroke.text.tokenizer import Tokenizer

SHORTLIST = 32_768  # tokens a draft model can say: the frequent ones (docs/speculation.md has the coverage)
Progress = Callable[[str, int, int], None]  # what is going on, bytes done, bytes in all


def quiet(what: str, done: int, total: int) -> None:
    """Shows nothing."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model file, ready: its weights packed, its text understood."""

    name: str
    path: Path
    version: str  # names the weights in cache keys
    config: ModelConfig
    weights: Weights
    codec: Codec
    context: int  # positions a sequence may span here
    draft: Model | None = None  # a smaller model of the same vocabulary that guesses


def open_model(settings: Settings, progress: Progress = quiet) -> Model:
    """Find (or fetch), read and pack the model that `settings` name, and its draft model where they name one.

    Raises `ConfigError` for settings that no model could serve, before anything is looked for, and where the two do not
    speak the same vocabulary; `ModelError`, `UnknownModel`.
    """
    judge(settings)
    model = _open(settings.model, settings, progress)
    if settings.draft is None:
        return model
    draft = _open(settings.draft, settings, progress, model)
    return replace(model, draft=draft)


def open_codec(settings: Settings, progress: Progress = quiet) -> Codec:
    """The text of the model that `settings` name, without its weights.  Raises `ModelError`, `UnknownModel`."""
    path = resolve(settings.model, lambda done, total: progress("fetching", done, total), settings.mirrors)
    return _codec(read(path).metadata)


def _open(spec: str, settings: Settings, progress: Progress, target: Model | None = None) -> Model:
    """A model; a draft model (whose `target` is given) has its context and only a shortlist of tokens to say."""
    path = resolve(spec, lambda done, total: progress("fetching", done, total), settings.mirrors)
    file = read(path)
    config = from_file(file)
    codec = _codec(file.metadata)
    if target is not None:
        _same_vocabulary(target, codec, path)
    context = target.context if target else _context(settings, config)
    weights = load_weights(
        file, config, context, lambda done, total: progress("loading", done, total), SHORTLIST if target else None
    )
    names = () if target else settings.model_names
    return Model(
        names[0] if names else _name(spec, path), path, content_version(path, config), config, weights, codec, context
    )


def _same_vocabulary(target: Model, draft: Codec, path: Path) -> None:
    ours, theirs = target.codec.tokenizer.vocabulary.tokens, draft.tokenizer.vocabulary.tokens
    shared = min(len(ours), len(theirs))
    if ours[:shared] != theirs[:shared]:
        differ = next(i for i in range(shared) if ours[i] != theirs[i])
        raise ConfigError(
            f"the draft model {path} has another vocabulary than {target.name} (token {differ} is "
            f"{theirs[differ]!r}, not {ours[differ]!r}); choose a smaller model of the same family",
            param="draft",
        )


def _codec(metadata: Mapping[str, object]) -> Codec:
    tokenizer = Tokenizer.from_metadata(metadata)
    return Codec(tokenizer, ChatTemplate.from_metadata(metadata, tokenizer.vocabulary))


def _name(spec: str, path: Path) -> str:
    """What clients call the model: the catalog's name, or the file's."""
    return path.stem if spec.endswith(".gguf") else spec


def _context(settings: Settings, config: ModelConfig) -> int:
    """Positions at most: the blocks of an engine's KV memory bound them further."""
    if settings.context == 0:
        return config.context
    if settings.context is None:
        return min(config.context, positions_held(config, settings))
    if settings.context > config.context:
        raise ConfigError(
            f"context is {settings.context}, and the model was trained for {config.context} positions; "
            f"give at most that, or 0 for all of it",
            param="context",
        )
    return settings.context
