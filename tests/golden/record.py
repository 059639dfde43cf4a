"""Records what llama.cpp says, so that a misreading of ours is not judged by itself.

    python -m tests.golden.record FOLDER-OF-LLAMA-SERVER

writes tests/golden/*.json: for real models greedy continuations of a few prompts, for tiny models with float weights
(which leave no room for another quantisation of activations) every family and every kind of rotary scaling.  Each
entry holds the prompt's token ids, the chosen ids and, per position, the most likely tokens' log-probabilities.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np

from tests.tiny import Matrix, Tiny, gguf_bytes, model_metadata, model_tensors
from twostroke.catalog import resolve

HERE = Path(__file__).parent
PORT = 18_431
SERVER = ("-c", "2048", "-np", "1", "-t", "2", "--no-warmup", "-fa", "off", "-ctk", "f32", "-ctv", "f32")
ASK = {"temperature": 0.0, "cache_prompt": False, "return_tokens": True}

MODELS = ("smollm2-135m", "qwen2.5-coder-0.5b")
PROMPTS = (
    "The capital of France is Paris, and the capital of Germany is",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "<|im_start|>user\nName three fruits.<|im_end|>\n<|im_start|>assistant\n",
    "Der Fluß fließt durch die Stadt. 河が流れる。 🙂 1234567890",
)


def _scaled(**keys: Any) -> Mapping[str, Any]:
    return {f"qwen2.rope.{key.replace('__', '.')}": value for key, value in keys.items()}


TINY: Mapping[str, Tiny] = {
    "llama": Tiny("llama", weights="F32"),
    "llama, biases, separate output": Tiny("llama", weights="F32", tied=False, bias=True),
    "llama, frequency factors": Tiny("llama", weights="F32"),
    "qwen2": Tiny("qwen2", weights="F32"),
    "qwen2, linear scaling": Tiny(
        "qwen2", weights="F32", metadata=_scaled(scaling__type="linear", scaling__factor=4.0)
    ),
    "qwen2, yarn": Tiny(
        "qwen2",
        weights="F32",
        metadata=_scaled(scaling__type="yarn", scaling__factor=4.0, scaling__original_context_length=64),
    ),
    "qwen3": Tiny("qwen3", weights="F32"),
    "qwen3, heads beyond the width": Tiny("qwen3", weights="F32", heads=8, head_dim=64, tied=False),
}


def tiny_file(name: str) -> bytes:
    """The model file of an entry of `TINY`."""
    tensors: dict[str, Matrix] = model_tensors(TINY[name])
    if "factors" in name:
        factors = np.linspace(1.0, 8.0, 32).astype("<f4")
        tensors["rope_freqs.weight"] = (0, (32,), factors.tobytes())
    return gguf_bytes(model_metadata(TINY[name]), tensors)


def tiny_prompts() -> Iterator[list[int]]:
    """Long enough for scaled rotations to differ."""
    for seed in itertools.count():
        yield np.random.default_rng(seed).integers(0, 256, 120).tolist()


@contextmanager
def server(folder: Path, model: Path) -> Iterator[str]:
    """A llama-server that answers, and is gone afterwards."""
    command = [str(folder / "llama-server"), "-m", str(model), "--port", str(PORT), *SERVER]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{PORT}"
    try:
        while not _answers(url):
            if process.poll() is not None:
                raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        urlopen(url + "/health").close()
    except OSError:
        return False
    return True


def post(url: str, body: Mapping[str, Any]) -> Any:
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request) as response:
        return json.load(response)


def complete(url: str, prompt: list[int], tokens: int, top: int) -> dict[str, Any]:
    """A greedy continuation with the `top` most likely tokens of each position."""
    answer = post(f"{url}/completion", {"prompt": prompt, "n_predict": tokens, "n_probs": top, **ASK})
    steps = answer.get("completion_probabilities", [])  # left out where the text is not whole UTF-8
    return {
        "prompt": prompt,
        "tokens": [step["id"] for step in steps],
        "text": answer["content"],
        "top": [[[t["id"], round(t["logprob"], 5)] for t in step["top_logprobs"]] for step in steps],
    }


def record_real(folder: Path, name: str) -> None:
    with server(folder, resolve(name)) as url:
        entries = []
        for text in PROMPTS:
            ids = post(f"{url}/tokenize", {"content": text, "parse_special": True})["tokens"]
            entries.append({"text_in": text, **complete(url, ids, tokens=24, top=50)})
    _write(name, {"model": name, "entries": entries})


def record_tiny(folder: Path) -> None:
    entries = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in TINY:
            path = Path(scratch) / "tiny.gguf"
            path.write_bytes(tiny_file(name))
            with server(folder, path) as url:
                answers = (complete(url, prompt, tokens=1, top=300) for prompt in tiny_prompts())
                whole = next(answer for answer in answers if answer["tokens"])
            entries[name] = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), **whole}
    _write("tiny", {"entries": entries})


def _write(name: str, data: Mapping[str, Any]) -> None:
    how = {
        "command": "python -m tests.golden.record FOLDER-OF-LLAMA-SERVER",
        "server": ["llama-server", *SERVER],
        "request": ASK,
    }
    lines = json.dumps({**how, **data}, ensure_ascii=False, separators=(",", ":"))
    (HERE / f"{name}.json").write_text(lines.replace(',"entries"', ',\n"entries"').replace("},{", "},\n{") + "\n")


def main(folder: str) -> None:
    record_tiny(Path(folder))
    for name in MODELS:
        record_real(Path(folder), name)


if __name__ == "__main__":
    main(*sys.argv[1:])
