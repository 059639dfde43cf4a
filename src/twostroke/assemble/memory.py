"""How much memory KV gets, in blocks."""

from __future__ import annotations

from twostroke._kernels import KVStore
from twostroke.assemble.model import Model
from twostroke.config import Settings
from twostroke.errors import ConfigError
from twostroke.runtime.machine import available_bytes
from twostroke.runtime.weights.load import kv_bytes_per_token

BLOCK = KVStore.BLOCK_TOKENS
KV_SHARE = 0.25  # of available memory, where nothing was chosen


def target_blocks(model: Model, settings: Settings) -> tuple[int, int]:
    """Blocks for known tokens, and spare ones that only drafts use: k + 1 slots reach into one block more."""
    block_bytes = kv_bytes_per_token(model.config, settings.kv_type) * BLOCK
    budget = settings.kv_memory or _default_kv_bytes(model, settings, block_bytes)
    spare = settings.max_sequences * (-(-settings.draft_tokens // BLOCK))
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
    most = 2 * settings.max_sequences * -(-model.context // BLOCK) * block_bytes
    least = (2 + settings.max_sequences * (1 + settings.draft_tokens // BLOCK)) * block_bytes
    return max(least, min(most, int(available_bytes() * KV_SHARE)))


def draft_blocks(draft: Model, settings: Settings, blocks: int) -> int:
    """Blocks of the draft model's own memory: as many positions as the target has, unless chosen."""
    if settings.draft_memory is None:
        return blocks
    block_bytes = kv_bytes_per_token(draft.config, settings.kv_type) * BLOCK
    if settings.draft_memory < 2 * block_bytes:
        raise ConfigError(
            f"draft_memory is {settings.draft_memory} bytes, and a draft model needs at least {2 * block_bytes} "
            f"for two blocks of KV; give more, or leave out --draft",
            param="draft_memory",
        )
    return settings.draft_memory // block_bytes
