"""What is asked is fixed, whole and of the promised size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import workload


def words(text: str) -> int:
    """A count of tokens that needs no tokenizer."""
    return len(text.split())


def test_every_kind_has_at_least_eight_prompts_with_ids_of_their_own() -> None:
    prompts = workload.committed()
    assert {prompt.kind for prompt in prompts} == set(workload.KINDS)
    assert min(sum(prompt.kind == kind for prompt in prompts) for kind in workload.KINDS) >= 8
    assert len({prompt.id for prompt in prompts}) == len(prompts)


@pytest.mark.parametrize("kind", workload.KINDS)
def test_the_file_of_a_kind_holds_that_kind_and_ends_in_a_question(kind: str) -> None:
    for prompt in workload.committed([kind]):
        assert prompt.kind == kind
        assert prompt.messages[-1]["role"] == "user"
        assert all(message["content"].strip() for message in prompt.messages)


def test_code_prompts_carry_the_code() -> None:
    assert all("```python" in prompt.messages[0]["content"] for prompt in workload.committed(["code"]))


def test_fewer_can_be_asked_for() -> None:
    assert [prompt.id for prompt in workload.committed(most=1)] == ["code-1", "rag-1", "chat-1"]


def test_kinds_take_turns_so_that_a_run_cut_short_has_some_of_each() -> None:
    assert [prompt.kind for prompt in workload.committed()[:6]] == ["code", "rag", "chat"] * 2


def test_spec_bench_is_sampled_evenly_and_by_first_turn(tmp_path: Path) -> None:
    path = tmp_path / "spec_bench.jsonl"
    rows = [{"question_id": n, "category": f"c{n % 3}", "turns": [f"first {n}", "second"]} for n in range(10)]
    path.write_text("\n".join(map(json.dumps, rows)))
    prompts = workload.spec_bench(path, 4)
    assert [prompt.id for prompt in prompts] == [f"spec-bench-{n}" for n in (0, 2, 4, 6)]
    assert prompts[1].messages == ({"role": "user", "content": "first 2"},)
    assert prompts[1].kind == "c2"


@pytest.mark.parametrize("most", [1, 100, 10**6])
def test_a_document_is_the_longest_beginning_that_fits(most: int) -> None:
    text = workload.document("heapq", most, words)
    whole = workload.document("heapq", 10**9, words)
    assert whole.startswith(text)
    assert words(text) <= most
    rest = whole[len(text) :]
    assert not rest or words(text + rest.splitlines(keepends=True)[0]) > most


def test_questions_about_one_document_share_it_as_their_beginning() -> None:
    prompts = list(workload.shared(words, 300))
    assert len(prompts) == sum(len(subject.questions) for subject in workload.SUBJECTS)
    for subject in workload.SUBJECTS:
        mine = [prompt for prompt in prompts if prompt.kind == subject.module]
        assert len(mine) >= 3
        assert len({prompt.messages[0]["content"] for prompt in mine}) == 1
        assert len({prompt.messages[1]["content"] for prompt in mine}) == len(mine)
