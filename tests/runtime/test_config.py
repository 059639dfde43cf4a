"""A config is what the file says, or a refusal that names what is wrong or not supported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tiny import Matrix, Tiny, gguf_bytes, model_metadata, model_tensors, write_model
from twostroke.errors import Corrupt, ModelError, UnsupportedArchitecture
from twostroke.runtime.models.config import ModelConfig, Rope, Scaling, from_file
from twostroke.runtime.weights import gguf


def load(folder: Path, tiny: Tiny, tensors: Mapping[str, Matrix | None] | None = None) -> ModelConfig:
    """The config of `tiny` with some tensors replaced, or left out where None."""
    path = folder / "model.gguf"
    merged = {**model_tensors(tiny), **(tensors or {})}
    path.write_bytes(gguf_bytes(model_metadata(tiny), {k: v for k, v in merged.items() if v is not None}))
    return from_file(gguf.read(path))


def floats(*values: float) -> Matrix:
    return 0, (len(values),), np.array(values, "<f4").tobytes()


# --- what is read


@pytest.mark.parametrize(
    ("architecture", "pairing", "bias", "norm"),
    [("llama", "interleaved", False, False), ("qwen2", "half", True, False), ("qwen3", "half", False, True)],
)
def test_each_family(tmp_path: Path, architecture: str, pairing: str, bias: bool, norm: bool) -> None:
    config = from_file(gguf.read(write_model(tmp_path / "m.gguf", Tiny(architecture))))
    assert config == ModelConfig(
        architecture=architecture,
        layers=2,
        width=256,
        heads=4,
        kv_heads=2,
        head_dim=64,
        ffn=512,
        vocab=300,
        context=1024,
        norm_epsilon=float(np.float32(1e-5)),
        rope=Rope(base=10_000.0, dims=64, pairing=pairing),  # type: ignore[arg-type]
        tied=True,
        qkv_bias=bias,
        qk_norm=norm,
    )


def test_switches_follow_the_tensors(tmp_path: Path) -> None:
    config = load(tmp_path, Tiny("llama", tied=False, bias=True))
    assert not config.tied
    assert config.qkv_bias


def test_defaults_where_a_key_may_be_missing(tmp_path: Path) -> None:
    absent = dict.fromkeys(
        ("llama.attention.head_count_kv", "llama.attention.key_length", "llama.attention.value_length"), None
    )
    config = load(tmp_path, Tiny(kv_heads=4, metadata=absent | {"llama.rope.freq_base": None}))
    assert (config.kv_heads, config.head_dim, config.rope.base, config.rope.dims) == (4, 64, 10_000.0, 64)


def test_heads_need_not_fill_the_width(tmp_path: Path) -> None:
    config = load(tmp_path, Tiny("qwen3", heads=2, kv_heads=1, head_dim=256))
    assert (config.heads * config.head_dim, config.width) == (512, 256)


def test_partial_rotary_dimensions(tmp_path: Path) -> None:
    assert load(tmp_path, Tiny(metadata={"llama.rope.dimension_count": 32})).rope.dims == 32


@pytest.mark.parametrize(
    ("metadata", "scaling"),
    [
        ({}, Scaling()),
        ({"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, Scaling()),
        ({"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, Scaling("linear", 4.0)),
        ({"rope.scaling.factor": 4.0}, Scaling("linear", 4.0)),
        ({"rope.scale_linear": 2.0}, Scaling("linear", 2.0)),
        (
            {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 256},
            Scaling("yarn", 4.0, 256),
        ),
        (
            {
                "rope.scaling.type": "yarn",
                "rope.scaling.factor": 2.0,
                "rope.scaling.attn_factor": 0.5,
                "rope.scaling.yarn_beta_fast": 16.0,
                "rope.scaling.yarn_beta_slow": 2.0,
            },
            Scaling("yarn", 2.0, 1024, 0.5, 16.0, 2.0),
        ),
    ],
)
def test_rope_scaling(tmp_path: Path, metadata: dict[str, Any], scaling: Scaling) -> None:
    tiny = Tiny("qwen2", metadata={f"qwen2.{key}": value for key, value in metadata.items()})
    assert load(tmp_path, tiny).rope.scaling == scaling


def test_frequency_factors(tmp_path: Path) -> None:
    factors = [1.0 + i for i in range(32)]
    assert load(tmp_path, Tiny(), {"rope_freqs.weight": floats(*factors)}).rope.factors == tuple(factors)


@pytest.mark.parametrize("values", [[1.0] * 31, [0.0] * 32, [float("nan")] * 32])
def test_bad_frequency_factors(tmp_path: Path, values: list[float]) -> None:
    with pytest.raises(Corrupt, match=r"rope_freqs\.weight"):
        load(tmp_path, Tiny(), {"rope_freqs.weight": floats(*values)})


# --- what is refused


@pytest.mark.parametrize("name", ["gemma3", "mamba", ""])
def test_unknown_architecture_lists_the_known(tmp_path: Path, name: str) -> None:
    tiny = Tiny(metadata={"general.architecture": name})
    with pytest.raises(UnsupportedArchitecture, match=f"{name!r} is not supported.*llama, qwen2, qwen3"):
        load(tmp_path, tiny)


@pytest.mark.parametrize("value", [None, 3, ["llama"]])
def test_no_architecture(tmp_path: Path, value: Any) -> None:
    with pytest.raises(Corrupt, match=r"general\.architecture"):
        load(tmp_path, Tiny(metadata={"general.architecture": value}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("llama.expert_count", 8),
        ("llama.attention.sliding_window", 512),
        ("llama.attention.causal", False),
        ("llama.attention.clamp_kqv", 8.0),
        ("llama.attn_logit_softcapping", 50.0),
        ("llama.logit_scale", 0.5),
        ("llama.attention.value_length", 32),
        ("llama.attention.head_count_kv", [2, 4]),
        ("llama.feed_forward_length", [512, 256]),
        ("llama.rope.scaling.type", "longrope"),
        ("llama.rope.scaling.yarn_log_multiplier", 0.1),
        ("split.count", 3),
    ],
)
def test_features_the_decoder_lacks(tmp_path: Path, key: str, value: Any) -> None:
    with pytest.raises(UnsupportedArchitecture) as caught:
        load(tmp_path, Tiny(metadata={key: value}))
    shown = value[0] if isinstance(value, list) else value
    assert key.removeprefix("llama.") in caught.value.message or str(shown) in caught.value.message


def test_a_window_as_wide_as_the_context_is_none(tmp_path: Path) -> None:
    assert load(tmp_path, Tiny(metadata={"llama.attention.sliding_window": 1024})).context == 1024


@pytest.mark.parametrize(
    "key",
    [
        "block_count",
        "embedding_length",
        "attention.head_count",
        "feed_forward_length",
        "context_length",
        "attention.layer_norm_rms_epsilon",
    ],
)
@pytest.mark.parametrize("value", [None, 0, -1, "12", True, float("nan")])
def test_missing_and_absurd_sizes(tmp_path: Path, key: str, value: Any) -> None:
    with pytest.raises(Corrupt, match=key):
        load(tmp_path, Tiny(metadata={f"llama.{key}": value}))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("llama.context_length", 2**31, "2147483648"),
        ("llama.attention.layer_norm_rms_epsilon", 1e-35, "1e-30 to 1e30"),
        ("llama.block_count", 2**31 - 1, "2147483647 layers are announced"),
        ("llama.block_count", 3, r"'blk\.2\.attn_norm\.weight' is missing"),
        ("llama.attention.head_count_kv", 3, "4 query heads do not divide among 3"),
        ("llama.rope.dimension_count", 63, "63 rotary dimensions"),
        ("llama.rope.dimension_count", 66, "66 rotary dimensions"),
        ("llama.rope.freq_base", 1.0, "rotary base"),
        ("llama.rope.freq_base", float("inf"), r"rope\.freq_base"),
        ("llama.vocab_size", 299, "vocab_size.* is 299.*300 rows"),
        ("tokenizer.ggml.tokens", ["a"], "vocabulary has 1 tokens.*300 rows"),
        ("llama.embedding_length", 128, r"token_embd\.weight.*\(300, 256\), not \(300, 128\)"),
    ],
)
def test_contradictions(tmp_path: Path, key: str, value: Any, words: str) -> None:
    with pytest.raises(Corrupt, match=words):
        load(tmp_path, Tiny(metadata={key: value}))


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_every_tensor_is_needed_in_its_shape(tmp_path: Path, architecture: str) -> None:
    tiny = Tiny(architecture, layers=1, tied=False)
    required = [name for name in model_tensors(tiny) if name != "output.weight"]
    for name in required:
        with pytest.raises(Corrupt, match=f"{name}' is missing"):
            load(tmp_path, tiny, {name: None})
        with pytest.raises(Corrupt, match=f"'{name}'.*3"):
            load(tmp_path, tiny, {name: floats(1.0, 2.0, 3.0)})


def test_tensors_of_another_decoder_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedArchitecture, match=r"blk\.0\.attn_output\.bias"):
        load(tmp_path, Tiny(), {"blk.0.attn_output.bias": floats(*[0.0] * 256)})


def test_derived_frequencies_of_old_files_are_ignored(tmp_path: Path) -> None:
    load(tmp_path, Tiny(), {"blk.1.attn_rot_embd": floats(1.0)})


def test_messages_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=str(tmp_path / "model.gguf")):
        load(tmp_path, Tiny(metadata={"llama.block_count": None}))
