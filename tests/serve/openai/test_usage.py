"""What an answer took, in the names of others; failures, models and a name for what computes the answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types import Model

from tests.serve.openai.talk import CHAT, chat, delta, done, phases, tagged, whole, writer
from twostroke.errors import TwostrokeError
from twostroke.serve import openai
from twostroke.serve.openai.timings import metrics, speculative_decoding, timings
from twostroke.serve.openai.writer import fingerprint


def details(*given: Any, **fields: Any) -> Any:
    return whole(writer(**fields), *given)["usage"]["completion_tokens_details"]


def test_predictions_are_accounted_for() -> None:
    guess = {"type": "content", "content": "guesses"}
    found = details(delta("a"), done(account=phases(drafted=4, accepted=(2, 1))), prediction=guess)
    assert (found["accepted_prediction_tokens"], found["rejected_prediction_tokens"]) == (3, 4)


def test_thoughts_are_counted_in_the_tokens_they_encode_to() -> None:
    assert details(delta("[t]why[/t]so"), done())["reasoning_tokens"] == 3
    assert details(delta("so"), done())["reasoning_tokens"] == 0


def test_timings_as_llama_cpp_tells_them() -> None:
    found = timings(phases(drafted=12, accepted=(3, 1), steps=4))
    assert found == {
        "cache_n": 2,
        "prompt_n": 3, "prompt_ms": 2.0, "prompt_per_token_ms": 0.667, "prompt_per_second": 1500.0,
        "predicted_n": 8, "predicted_ms": 8.0, "predicted_per_token_ms": 1.0, "predicted_per_second": 1000.0,
        "draft_n": 12, "draft_n_accepted": 4,
    }  # fmt: skip
    assert "draft_n" not in timings(phases())


def test_speculation_is_told_as_vllm_tells_it() -> None:
    account = metrics(phases(drafted=12, accepted=(3, 1, 0, 0), steps=3))
    assert account["speculative_decoding"] == {
        "mean_acceptance_length": round(1 + 4 / 3, 6),
        "draft_acceptance_rate": round(4 / 12, 6),
        "acceptance_histogram": [0, 2, 1, 0, 0],
        "num_spec_steps": 3,
        "num_accepted_draft_tokens": 4,
        "num_draft_tokens": 12,
        "num_spec_tokens": 4,
    }
    assert account["tokens_per_second"] == 250.0
    assert metrics(phases())["speculative_decoding"] is None


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_the_histogram_counts_every_step_and_every_draft(reached: list[int]) -> None:
    accepted = tuple(sorted(reached, reverse=True))
    steps = 9
    histogram = speculative_decoding(phases(drafted=steps * 6, accepted=accepted, steps=steps))["acceptance_histogram"]
    assert sum(histogram) == steps
    assert sum(kept * count for kept, count in enumerate(histogram)) == sum(accepted)
    assert len(histogram) == len(accepted) + 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "invalid_request_error"),
        (405, "invalid_request_error"),
        (413, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "server_error"),
        (503, "service_unavailable_error"),
    ],
)
def test_errors_have_the_shape_clients_read(status: int, kind: str) -> None:
    problem = TwostrokeError("said", param="field")
    problem.status = status
    body = {"error": {"message": "said", "type": kind, "param": "field", "code": "internal_error"}}
    assert openai.error(problem, "req_1") == body
    assert openai.error_event(problem, "req_1").startswith(b'data: {"error":{"message":"said"')


def test_model_cards() -> None:
    card = openai.card("echo", 1700000000, 256)
    assert card == {
        "id": "echo",
        "object": "model",
        "created": 1700000000,
        "owned_by": "twostroke",
        "max_model_len": 256,
    }
    Model.model_validate(card)


def test_a_fingerprint_names_weights_and_version_and_tells_neither() -> None:
    over = replace(tagged(), weights="/home/me/model.gguf:5")
    name = fingerprint(over)
    assert name is not None
    assert name.startswith("fp_")
    assert "me" not in name
    assert len({name, fingerprint(replace(over, weights="b")), fingerprint(replace(over, version="2"))}) == 3
    assert whole(CHAT.writer(chat(over), over), done())["system_fingerprint"] == name
    assert fingerprint(tagged()) is None
