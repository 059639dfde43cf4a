"""Schemathesis reads the OpenAPI document, tries every operation on a live server with a real engine, and believes it.

Bodies that fit the document and bodies that break it in one place: no answer is a server's error, every status, content
type and body is as documented, and what breaks the document is refused.  The examples are the same on every run.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from tests.serve.live import running
from tests.serve.small import small
from twostroke.serve.openapi import document

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
DOCUMENT = schemathesis.openapi.from_dict(document("1.2.3"))
OPERATIONS = {f"{found.ok().method} {found.ok().path}": found.ok() for found in DOCUMENT.get_all_operations()}
JUDGED = [name for name, operation in OPERATIONS.items() if operation.body or operation.query]
COUNTING = [name for name in JUDGED if name.endswith("_tokens")]  # read the same bodies as what answers them
COSTLY = {"n": 2, "max_tokens": 4, "max_completion_tokens": 4, "max_output_tokens": 4}  # as much as time allows


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, requests.Session]]:
    logging.getLogger("twostroke.http").setLevel(logging.ERROR)  # of unknown fields there are thousands
    engine = small(tmp_path_factory.mktemp("schemathesis"), max_tokens=4)
    with running(engine.service) as (url, _, _), requests.Session() as session:
        yield url, session
        engine.settle()
    logging.getLogger("twostroke.http").setLevel(logging.NOTSET)


def tries(name: str, mode: GenerationMode, count: int, live: tuple[str, requests.Session]) -> Counter[int]:
    """How often each status was answered."""
    url, session = live
    checks = CHECKS if mode is GenerationMode.POSITIVE else [*CHECKS, negative_data_rejection]
    statuses: Counter[int] = Counter()

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(OPERATIONS[name].as_strategy(generation_mode=mode))
    def attempt(case: schemathesis.Case) -> None:
        temper(case.body)
        answer = case.call(base_url=url, session=session, timeout=20)
        statuses[answer.status_code] += 1
        case.validate_response(answer, checks=checks)

    attempt()
    return statuses


def temper(body: Any) -> None:
    """Ask for no more than the test has time for, and for the model that is there."""
    if isinstance(body, dict):
        for name, most in COSTLY.items():
            if isinstance(body.get(name), int) and body[name] > most:
                body[name] = most
        if isinstance(body.get("model"), str):
            del body["model"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_the_document_describes_is_answered_as_it_says(name: str, live: tuple[str, requests.Session]) -> None:
    statuses = tries(name, GenerationMode.POSITIVE, 2 if name in COUNTING else 5, live)
    assert "{" in name or statuses[200], statuses


@pytest.mark.parametrize("name", [name for name in JUDGED if name not in COUNTING])
def test_what_the_document_forbids_is_refused(name: str, live: tuple[str, requests.Session]) -> None:
    tries(name, GenerationMode.NEGATIVE, 5, live)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("name", JUDGED)
def test_hundreds_of_bodies(name: str, mode: GenerationMode, live: tuple[str, requests.Session]) -> None:
    tries(name, mode, 400, live)
