"""How much memory KV gets, in blocks, and how long a context that leaves.

One sequence at full context must fit.  Where nothing was chosen, KV gets a share of free memory, and that decides how
much of what the model allows is served; a context that was chosen makes the memory grow to hold it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twostroke._kernels import KVStore
from twostroke.config import Settings, written
from twostroke.errors import ConfigError
from twostroke.runtime.machine import available_bytes
from twostroke.runtime.models.config import ModelConfig
from twostroke.runtime.weights.load import kv_bytes_per_token

if TYPE_CHECKING:
    from twostroke.assemble.model import Model

BLOCK = KVStore.BLOCK_TOKENS
KV_SHARE = 0.25  # of available memory, where nothing was chosen
LEAST = 4096  # positions a model is opened for however little memory is free: what calibration steps on, and more


def target_blocks(model: Model, settings: Settings) -> tuple[int, int]:
    """Blocks for known tokens, and spare ones that only drafts use: k + 1 slots reach into one block more.

    Raises `ConfigError` where a chosen memory holds too few.
    """
    block_bytes, spare = _block_bytes(model.config, settings), _spare(settings)
    budget = settings.kv_memory or _default_kv_bytes(model, settings, block_bytes)
    blocks = budget // block_bytes - spare
    if blocks < 2:
        need = (2 + spare) * block_bytes
        raise ConfigError(
            f"kv_memory is {budget} bytes, and {settings.max_sequences} sequences of this model need at least {need}; "
            f"give more, or fewer max_sequences",
            param="kv_memory",
        )
    return blocks, spare


def _default_kv_bytes(model: Model, settings: Settings, block_bytes: int) -> int:
    """A share of what is free, and no more than all sequences at full length could fill twice over."""
    free, full = available_bytes(), -(-model.context // BLOCK)
    most = 2 * settings.max_sequences * full * block_bytes
    least = (2 + settings.max_sequences * (1 + settings.draft_tokens // BLOCK)) * block_bytes
    if settings.context is not None:  # it was chosen: hold it, as long as there is memory at all
        least = max(least, min(free, (full + _spare(settings)) * block_bytes))
    return max(least, min(most, int(free * KV_SHARE)))


def positions_held(config: ModelConfig, settings: Settings) -> int:
    """Positions that KV memory can hold at most, before the weights have taken theirs."""
    budget = settings.kv_memory or int(available_bytes() * KV_SHARE)
    return max(LEAST, budget // kv_bytes_per_token(config, settings.kv_type))


def context_line(model: Model, settings: Settings, context: int, kv_bytes: int) -> str:
    """Which `context` an engine with `kv_bytes` of KV memory came to, and why."""
    own = model.config.context
    if context == own:
        return f"{context} tokens (the model's own)"
    if context == settings.context:
        return f"{context} tokens (as chosen; the model allows {own})"
    wanted = settings.context or own
    need = (-(-wanted // BLOCK) + _spare(settings)) * _block_bytes(model.config, settings)
    allows = f"the model allows {own}" if wanted == own else f"{wanted} were chosen"
    return f"{context} tokens (what {_gib(kv_bytes)} of KV memory hold; {allows}: give --kv-memory {_enough(need)})"


def _block_bytes(config: ModelConfig, settings: Settings) -> int:
    return kv_bytes_per_token(config, settings.kv_type) * BLOCK


def _spare(settings: Settings) -> int:
    return settings.max_sequences * -(-settings.draft_tokens // BLOCK)


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def _enough(count: int) -> str:
    """A size a person would type that is no less than `count`."""
    unit = 2**30 if count > 2**32 else 2**26 if count > 2**28 else 2**20
    return written(-(-count // unit) * unit)


def draft_blocks(draft: Model, settings: Settings, blocks: int) -> int:
    """Blocks of the draft model's own memory: as many positions as the target has, unless chosen."""
    if settings.draft_memory is None:
        return blocks
    block_bytes = _block_bytes(draft.config, settings)
    if settings.draft_memory < 2 * block_bytes:
        raise ConfigError(
            f"draft_memory is {settings.draft_memory} bytes, and a draft model needs at least {2 * block_bytes} "
            f"for two blocks of KV; give more, or leave out --draft",
            param="draft_memory",
        )
    return settings.draft_memory // block_bytes
