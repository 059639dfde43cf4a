"""The compiled kernels (csrc): packed weights and row-invariant products.  Nothing here knows requests or models."""

def kernel_path() -> str:
    """The instruction set in use: "amx", "avx512", "avx2" or "portable".  All compute the same bits."""

def set_kernel_path(name: str) -> None:
    """Force a path, for tests and benchmarks.  Raises ValueError if it is unknown or this machine lacks it."""

def kernel_paths() -> list[str]:
    """The paths this machine has, slowest first; the last one is the default."""
