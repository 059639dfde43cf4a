"""What stands around an engine, on tiny random models: memory, what a namespace leaves, and drafters that misbehave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.tiny import Tiny, write_model
from twostroke import LLM, Sampling
from twostroke.engine.protocols import SequenceView
from twostroke.errors import ConfigError, InvalidParameter
from twostroke.runtime.weights.load import kv_bytes_per_token
from twostroke.types import Proposal

PROMPT = "the cat and the dog and the cat and the dog and the cat"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A target, and another model of its vocabulary."""
    directory = tmp_path_factory.mktemp("models")
    return write_model(directory / "target.gguf"), write_model(directory / "draft.gguf", Tiny(seed=1))


@pytest.fixture(scope="module")
def plain(files: tuple[Path, Path]) -> tuple[int, ...]:
    with opened(files[0], speculate="off") as llm:
        return llm.generate(PROMPT, max_tokens=24, ignore_eos=True).token_ids


@pytest.fixture
def llm(files: tuple[Path, Path]) -> Iterator[LLM]:
    with opened(files[0], draft=str(files[1])) as llm:
        yield llm


def opened(path: Path, **settings: Any) -> LLM:
    return LLM(str(path), **{"calibrate": False, "kv_memory": 2**23, "max_sequences": 2, "threads": 1, **settings})


def said(llm: LLM, **options: Any) -> tuple[int, ...]:
    return llm.generate(PROMPT, max_tokens=24, ignore_eos=True, **options).token_ids


# -- memory ----------------------------------------------------------------------------------------------------------


def test_the_draft_models_share_is_reported_on_top_of_the_targets(files: tuple[Path, Path], llm: LLM) -> None:
    sizes = llm.assembly.kv_bytes
    assert 0.9 * 2**23 < sizes["target"] <= 2**23
    assert sizes["draft"] > 0
    with opened(files[0]) as alone:
        assert alone.assembly.kv_bytes == {"target": sizes["target"]}
    block = 16 * kv_bytes_per_token(llm.assembly.model.config, "q16")
    with opened(files[0], draft=str(files[1]), draft_memory=5 * block + 1) as small:
        assert small.assembly.kv_bytes == {"target": sizes["target"], "draft": 5 * block}


def test_no_memory_for_the_draft_model_is_refused_with_what_it_needs(files: tuple[Path, Path]) -> None:
    with pytest.raises(ConfigError, match=r"draft_memory is 0 bytes.*at least \d+.*leave out --draft") as caught:
        opened(files[0], draft=str(files[1]), draft_memory=0)
    assert caught.value.param == "draft_memory"


def test_the_least_memory_of_a_draft_model_costs_drafts_and_no_answer(
    files: tuple[Path, Path], llm: LLM, plain: tuple[int, ...]
) -> None:
    block = 16 * kv_bytes_per_token(llm.assembly.model.config, "q16")
    with opened(files[0], draft=str(files[1]), draft_memory=2 * block) as small:
        assert small.assembly.kv_bytes["draft"] == 2 * block
        assert said(small, speculate="draft") == plain


def test_a_draft_model_of_another_vocabulary_names_the_token_that_differs(tmp_path: Path) -> None:
    target = write_model(tmp_path / "target.gguf")
    tokens = list(_tokens(target))
    tokens[77], tokens[78] = tokens[78], tokens[77]
    other = write_model(tmp_path / "other.gguf", Tiny(metadata={"tokenizer.ggml.tokens": tokens}))
    with pytest.raises(ConfigError, match=r"another vocabulary than target .token 77 is 'o', not 'n'.") as caught:
        opened(target, draft=str(other))
    assert caught.value.param == "draft"


def _tokens(path: Path) -> Sequence[str]:
    with opened(path) as llm:
        return llm.codec.tokenizer.vocabulary.tokens


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drafter", ["ngram", "suffix", "prediction", "draft", "auto"])
def test_an_embedded_engine_takes_every_drafter_by_name(llm: LLM, plain: tuple[int, ...], drafter: str) -> None:
    assert said(llm, speculate=drafter, prediction=PROMPT) == plain
    assert said(llm, speculate=drafter, draft_tokens=3, prediction=llm.codec.decode(plain)) == plain


def test_a_drafter_that_is_not_loaded_is_refused(files: tuple[Path, Path]) -> None:
    with opened(files[0]) as llm:
        for name in ("draft", "synthetic", "magic"):
            with pytest.raises(InvalidParameter, match=f"unknown drafter '{name}'; choose one of auto, ngram, off"):
                llm.stream(PROMPT, speculate=name)
        for count in (0, -1, 65, 1.5):
            with pytest.raises(InvalidParameter, match="from 1 to 64"):
                llm.stream(PROMPT, draft_tokens=count)  # type: ignore[arg-type]


def test_a_prediction_must_be_text_that_fits_the_context(llm: LLM) -> None:
    with pytest.raises(InvalidParameter, match="prediction is 5; give the text you expect"):
        llm.stream(PROMPT, prediction=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match=r"the prediction has \d{4,} tokens and the context is \d+; shorten it"):
        llm.stream(PROMPT, prediction="7 " * 5000)


def test_a_prediction_does_not_begin_a_text(tmp_path: Path) -> None:
    bos = {"tokenizer.ggml.bos_token_id": 297, "tokenizer.ggml.add_bos_token": True}
    with opened(write_model(tmp_path / "bos.gguf", Tiny(metadata=bos))) as llm:
        assert llm.encode("the cat")[0] == 297
        assert llm.codec.encode("the cat", bos=False) == llm.encode("the cat")[1:]


class Raises:
    """Fails whenever it is asked."""

    name = "raises"
    groups = ()

    def propose(self, sequences: Sequence[SequenceView]) -> list[Proposal]:
        raise RuntimeError("no idea")

    def observe(self, report: object) -> None:
        raise RuntimeError("no eyes")

    def forget(self, sequence: int) -> None:
        raise RuntimeError("no memory")


class Junk(Raises):
    """Says ids that are none."""

    name = "junk"

    def propose(self, sequences: Sequence[SequenceView]) -> list[Proposal]:
        return [Proposal(s.id, (300, -1), (0.9, 0.9), self.name) for s in sequences]

    def observe(self, report: object) -> None: ...

    def forget(self, sequence: int) -> None: ...


@pytest.mark.parametrize("drafter", [Raises(), Junk()], ids=lambda drafter: drafter.name)
def test_a_drafter_that_raises_or_says_junk_is_counted_and_changes_no_answer(
    files: tuple[Path, Path], plain: tuple[int, ...], drafter: Any
) -> None:
    with opened(files[0]) as llm:
        llm.assembly.drafter.drafters["bad"] = drafter
        answer = llm.generate(PROMPT, max_tokens=24, ignore_eos=True, speculate="bad")
        assert answer.token_ids == plain
        assert answer.phases.decode.drafted == 0
        assert llm.assembly.engine.faults["drafter"] > 0


# -- what a namespace leaves -------------------------------------------------------------------------------------------


def test_a_purge_forgets_the_cached_prefixes_and_the_text_drafts_are_made_from(llm: LLM) -> None:
    history = llm.assembly.drafter.drafters["suffix"].lookup.history  # type: ignore[attr-defined]
    for namespace in ("a", "b"):
        said(llm, namespace=namespace, speculate="draft")
        said(llm, namespace=namespace, speculate="suffix")
        assert history.size(namespace) > 0
    llm.assembly.purge("a")
    llm.assembly.check()
    assert (history.size("a"), history.size("b") > 0) == (0, True)
    for space in llm.assembly.space:
        assert set(space.index.namespaces()) == {"b"}
    again = {name: llm.generate(PROMPT, max_tokens=4, namespace=name).cached_tokens > 0 for name in ("a", "b")}
    assert again == {"a": False, "b": True}


def test_who_runs_while_its_namespace_is_purged_finishes_and_leaves_nothing(llm: LLM, plain: tuple[int, ...]) -> None:
    stream = llm.stream(PROMPT, max_tokens=24, ignore_eos=True, namespace="a")
    for _ in range(5):
        llm.step()
    llm.assembly.purge("a")
    assert stream.result().token_ids == plain
    llm.assembly.check()
    assert all("a" not in space.index.namespaces() for space in llm.assembly.space)
    history = llm.assembly.drafter.drafters["suffix"].lookup.history  # type: ignore[attr-defined]
    assert history.size("a") == 0


def test_sampling_is_the_targets_own_with_a_draft_model(files: tuple[Path, Path], llm: LLM) -> None:
    sampling = Sampling(temperature=1.0, seed=7)
    with opened(files[0], speculate="off") as alone:
        wanted = said(alone, sampling=sampling)
    assert said(llm, sampling=sampling, speculate="draft") == wanted
