"""The compiled kernels.  Every function releases the interpreter while it computes.

Arguments of a wrong shape, dtype or range raise `ValueError`; nothing is read outside an array.  Everything is
row-invariant: a row's bits depend on that row's own tokens alone, on every instruction set and any thread count.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

# --- Threads ----------------------------------------------------------------------------------------------------------

class Pool:
    """`threads` threads (the caller is one of them) that split output elements, never a reduction.

    One caller at a time.  Idle threads sleep.
    """

    def __init__(self, threads: int) -> None: ...
    @property
    def threads(self) -> int: ...

# --- Weights (csrc/gemm.h) --------------------------------------------------------------------------------------------

class Weight:
    """One packed matrix of `rows` outputs by `cols` inputs, at the precision of its file."""

    @staticmethod
    def pack(ggml_type: int, rows: int, cols: int, data: NDArray[np.uint8]) -> Weight:
        """Repack a file's bytes losslessly; `data` is flat and C-contiguous (a memory map will do) and not kept.

        Types: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K.  `cols` must be a multiple of the type's
        block (1, 32 or 256).  Raises ValueError for another type, shape or number of bytes.
        """

    @property
    def rows(self) -> int: ...
    @property
    def cols(self) -> int: ...
    @property
    def type(self) -> str:
        """The type's name, "Q4_K" for example."""

    @property
    def file_bytes(self) -> int: ...
    @property
    def resident_bytes(self) -> int:
        """Bytes of the packed form: those of the file, but for rows padded to a multiple of 16."""

    def dequantize(self, rows: NDArray[np.int64]) -> Floats:
        """The values of the given rows [n], as [n, cols]: bit for bit as ggml.  ValueError for a missing row."""

def multiply(pool: Pool, weight: Weight, x: Floats, bias: Floats | None = None) -> Floats:
    """x [M, cols] quantised row by row, times the weight, as [M, rows] (+ bias [rows])."""

def quantize(x: Floats, group: Literal[32, 256]) -> tuple[NDArray[np.int8], Floats]:
    """How products see their inputs: codes [M, cols] and one scale per group [M, cols / group].

    scale = largest magnitude / 127, codes round x / scale to nearest even.  A group with a NaN or infinity has codes 0
    and scale NaN; one whose magnitudes all lie below 1e-30 has codes 0 and scale 0.
    """

def read_bandwidth(pool: Pool, bytes: int, repeats: int) -> list[float]:
    """GB/s at which the pool's threads together read `bytes` of memory, each its own part; one figure per repeat."""

def sweep_seconds(pool: Pool, weights: Sequence[Weight], rows: int, repeats: int) -> list[float]:
    """Seconds of one product with each weight in turn, for `rows` activation rows quantised before; one per repeat."""

# --- Keys and values --------------------------------------------------------------------------------------------------

class KVStore:
    """Keys and values of one block pool for all layers, in one lazily committed region.

    Blocks hold 16 tokens.  "q16" keeps integers of 16 bits up to 8191, "q8" of 8 bits up to 127, both with one float
    scale per token and head.
    A run reads every cell as stored, those it has just written included.
    """

    BLOCK_TOKENS: int

    def __init__(self, layers: int, blocks: int, kv_heads: int, head_dim: int, type: str = "q16") -> None: ...
    @property
    def layers(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def kv_heads(self) -> int: ...
    @property
    def head_dim(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def bytes(self) -> int:
        """Bytes of the whole region, committed or not."""

    @property
    def bytes_per_token(self) -> int:
        """Bytes of keys and values of one position, all layers."""

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Copy the first `tokens` cells of block `source` into block `target`, in all layers, bit for bit."""

    def read(self, layer: int, block: int) -> tuple[Floats, Floats]:
        """Keys and values of a block as attention sees them, each [kv_heads, 16, head_dim]."""

    def write(self, layer: int, block: int, keys: Floats, values: Floats) -> None:
        """Round and store a whole block, each [kv_heads, 16, head_dim]."""

    def poison(self, block: int | None = None) -> None:
        """Fill a block (or all) with NaN: what a recycled cell may hold."""

# --- A forward pass, recorded once and run by one native call ---------------------------------------------------------

Register = int  # a float buffer [rows][width]
Quantized = int  # activations ready for products: [rows][cols] in the grouping of a weight

class Program:
    """A list of operations over registers, recorded at load, executed whole by `run`.

    Until `gather`, operations work on all rows of the run; after it, on the sampled rows only.  `max_rows` bounds
    the rows of one run and its sampled rows; memory is committed as it is used.
    """

    def __init__(self, pool: Pool, max_rows: int) -> None: ...

    # Buffers
    def register(self, width: int) -> Register: ...
    def activations(self, weight: Weight) -> Quantized:
        """A buffer of the columns and grouping that products with `weight` (and others like it) read."""

    # Operations, in the order they are to run
    def embed(self, weight: Weight, out: Register) -> None:
        """out[m] = row tokens[m] of the table."""

    def norm(
        self, x: Register, gain: Floats, eps: float, out: Register | None = None, quantized: Sequence[Quantized] = ()
    ) -> None:
        """RMSNorm (Zhang and Sennrich 2019): x / sqrt(mean(x²) + eps) * gain, stored and/or quantised."""

    def quantize(self, x: Register, quantized: Sequence[Quantized]) -> None:
        """Quantise rows of a register into activations."""

    def multiply(self, products: Sequence[tuple[Weight, Quantized, Register, int, Floats | None, bool]]) -> None:
        """Products (weight, x, out, column, bias, add) in one parallel region.

        out[m, column + n] (+)= weight[n] · x[m] (+ bias[n]).
        """

    def rope_store(
        self,
        qkv: Register,
        heads: int,
        store: KVStore,
        layer: int,
        cos: Floats,
        sin: Floats,
        pairing: str,
        q_gain: Floats | None = None,
        k_gain: Floats | None = None,
        eps: float = 0.0,
    ) -> None:
        """Rotate queries and keys by position, then round keys and values into the store.

        `qkv` rows hold [heads × d | kv_heads × d | kv_heads × d]; queries are rotated in place.  `cos` and `sin` are
        [context, r / 2] for the first r dims of a head.  "norm" pairs (2i, 2i + 1), "neox" pairs (i, i + r / 2).
        With gains [d], each head's query and key pass an RMSNorm before they are rotated.
        """

    def attend(
        self,
        qkv: Register,
        heads: int,
        store: KVStore,
        layer: int,
        scale: float,
        out: Register | None = None,
        quantized: Sequence[Quantized] = (),
    ) -> None:
        """Causal attention of every row over its run's stored positions 0…own; out[m] is [heads × d]."""

    def silu_mul(self, gate_up: Register, out: Register | None = None, quantized: Sequence[Quantized] = ()) -> None:
        """silu(gate) * up, of rows [gate | up], stored and/or quantised."""

    def add(self, x: Register, out: Register) -> None:
        """out += x."""

    def gather(self, x: Register, out: Register) -> None:
        """out[s] = x[sample_rows[s]]; all later operations work on the sampled rows."""

    # Execution
    def run(
        self,
        tokens: Ints,
        positions: Ints,
        run_offsets: Ints,
        block_tables: Ints,
        table_offsets: Ints,
        sample_rows: Ints,
        output: Register,
    ) -> Floats:
        """Execute the list; returns a view [S, width] of register `output`, valid until the next run.

        tokens, positions: [M]; positions are consecutive inside a run.
        run_offsets: [R + 1], run r is rows run_offsets[r]…run_offsets[r + 1], all of one sequence.
        block_tables: all runs' block ids; run r's are block_tables[table_offsets[r] : table_offsets[r + 1]], and cover
        its last position.
        sample_rows: [S] row numbers; the output holds these rows, in this order.
        """

    def rows(self, register: Register) -> Floats:
        """A writable view [max_rows, width] of a register as the last run left it."""

    profiling: bool  # time every operation (off by default)

    def profile(self) -> list[tuple[str, float]]:
        """Seconds per recorded operation, in order, summed since profiling was switched on."""

# --- Choosing tokens --------------------------------------------------------------------------------------------------

def sample(
    logits: Floats,
    temperature: Floats,
    top_k: Ints,
    top_p: Floats,
    min_p: Floats,
    seed: NDArray[np.uint64],
    choice: Ints,
    position: Ints,
    pool: Pool | None = None,
) -> Ints:
    """One token id per row of logits [S, V]; all other arrays are [S].

    A temperature below 1e-5 takes the first maximum (NaN counts as -inf).  Otherwise the candidates are those that
    top-k (0: all), then top-p, then min-p leave, and the choice is argmax(logit / temperature + gumbel), ties to the
    lowest id.
    """

def gumbel(seed: int, choice: int, position: int, ids: Ints) -> Floats:
    """The noise of each token id under one key, as `sample` draws it (standard Gumbel; Philox4x32-10 counters)."""

def logprobs(logits: Floats, chosen: int, top: int) -> tuple[float, Ints, Floats]:
    """(log-probability of `chosen`, ids and log-probabilities of the `top` most likely, best first) of one row [V]."""

# --- Instruction sets -------------------------------------------------------------------------------------------------

def kernel_paths() -> list[str]:
    """The paths this machine can run, slowest first: "portable", "avx2", "avx512", "amx"; the last is the default."""

def set_kernel_path(name: str) -> None:
    """Choose the instruction set of all kernels; they differ in speed, never in bits.

    Raises ValueError if it is unknown or this machine lacks it.  TWOSTROKE_KERNELS in the environment does the same.
    """

def kernel_path() -> str:
    """The path in use."""
