"""Going on from what was stored: previous responses, references to items, and questions about both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from openai.types.responses import ResponseItem, ResponseItemList
from pydantic import TypeAdapter

from tests.serve.responses.plain import TOOL, Served, call, events
from twostroke.errors import InvalidParameter, RequestError
from twostroke.serve.responses import delete, get, input_items
from twostroke.serve.responses.failures import UnknownPrevious, UnknownResponse

ITEM: TypeAdapter[Any] = TypeAdapter(ResponseItem)


@pytest.fixture
def served() -> Served:
    return Served()


def test_a_conversation_goes_on_from_a_stored_response(served: Served) -> None:
    first = served.answered(
        "<think>Hm.</think>Let me see." + call("look", q="x"), tools=[TOOL], instructions="Be brief."
    )
    output = {"type": "function_call_output", "call_id": first["output"][2]["call_id"], "output": "seen"}
    second = served.answered("Found.", "resp_ab2", [output], previous_response_id="resp_ab1", tools=[TOOL])
    talk = served.talk("Thanks", previous_response_id="resp_ab2")
    assert [(m.role, m.text, m.reasoning) for m in talk.messages] == [
        ("user", "hello", ""), ("assistant", "Let me see.", "Hm."), ("tool", "seen", ""), ("assistant", "Found.", ""),
        ("user", "Thanks", ""),
    ]  # fmt: skip
    assert talk.messages[1].path == "previous[1]"
    assert second["previous_response_id"] == "resp_ab1"
    served.store.check()


def test_what_is_not_stored_cannot_be_continued(served: Served) -> None:
    served.answered("Yes", store=False)
    assert len(served.store) == 0
    with pytest.raises(UnknownPrevious) as refused:
        served.parsed(previous_response_id="resp_ab1")
    assert served.format.error(refused.value, "")["error"]["code"] == "previous_response_not_found"


def test_a_tenant_cannot_continue_anothers_response(served: Served) -> None:
    served.answered("Yes", cache_salt="mine")
    assert served.talk(previous_response_id="resp_ab1", cache_salt="mine").messages[1].text == "Yes"
    problems = []
    for name in ("resp_ab1", "resp_never"):
        with pytest.raises(UnknownPrevious) as refused:
            served.parsed(previous_response_id=name, cache_salt="yours")
        problems.append(refused.value.message.replace(name, ""))
    assert problems[0] == problems[1]


def test_items_are_referred_to_by_their_ids(served: Served) -> None:
    served.answered("Yes")
    talk = served.talk([{"role": "user", "content": "a"}, {"type": "item_reference", "id": "msg_ab100"}])
    assert talk.messages[1].text == "Yes"
    assert served.talk([{"id": "msg_ab100"}]).messages[0].text == "Yes"


def test_a_response_is_stored_before_its_stream_says_that_it_is_complete(served: Served) -> None:
    submission = served.parsed(stream=True)
    served.streamed(submission, events(submission, "Yes"))
    assert get("resp_ab1", "", served.store)["output"][0]["content"][0]["text"] == "Yes"


def test_a_response_can_be_read_and_deleted(served: Served) -> None:
    body = served.answered("Yes")
    assert get("resp_ab1", "", served.store) == body
    assert delete("resp_ab1", "", served.store) == {"id": "resp_ab1", "object": "response", "deleted": True}
    for question in (get, delete, input_items):
        with pytest.raises(UnknownResponse) as refused:
            question("resp_ab1", "", served.store)
        assert refused.value.status == 404


def test_another_namespace_reads_and_deletes_nothing(served: Served) -> None:
    served.answered("Yes")
    for question in (get, delete, input_items):
        with pytest.raises(RequestError):
            question("resp_ab1", "other", served.store)
    assert get("resp_ab1", "", served.store)


def test_the_input_of_a_response_fits_the_clients_models(served: Served) -> None:
    answered = served.answered("Yes" + call("look"), tools=[TOOL])
    output = {"type": "function_call_output", "call_id": answered["output"][1]["call_id"], "output": "seen"}
    items = [output, {"role": "user", "content": "And?"}, {"role": "assistant", "content": "So."}]
    served.answered("No", "resp_ab2", items, previous_response_id="resp_ab1", tools=[TOOL])
    page = input_items("resp_ab2", "", served.store, order="asc")
    for item in page["data"]:
        ITEM.validate_python({"status": "completed", **item})
    assert ResponseItemList.model_construct(**page).has_more is False
    assert [item["type"] for item in page["data"]] == [
        "message", "message", "function_call", "function_call_output", "message", "message",
    ]  # fmt: skip


def test_input_comes_in_pages(served: Served) -> None:
    served.answered("Yes", input=[{"role": "user", "content": text} for text in "abc"])
    first = input_items("resp_ab1", "", served.store, limit=2)
    rest = input_items("resp_ab1", "", served.store, limit=2, after=first["last_id"])
    texts = [item["content"][0]["text"] for item in (*first["data"], *rest["data"])]
    assert (texts, first["has_more"], rest["has_more"]) == (["c", "b", "a"], True, False)
    assert input_items("resp_ab1", "", served.store, after=rest["last_id"])["data"] == []


@pytest.mark.parametrize("page", [{"limit": 0}, {"limit": 101}, {"order": "up"}, {"after": "msg_no"}])
def test_a_page_that_cannot_be_is_refused(served: Served, page: dict[str, Any]) -> None:
    served.answered("Yes")
    with pytest.raises(InvalidParameter) as refused:
        input_items("resp_ab1", "", served.store, **page)
    assert refused.value.param == next(iter(page))


def compared(served: Served, cached: int, **fields: Any) -> dict[str, Any]:
    served.answered("Yes", tools=[TOOL])
    served.caller = replace(served.caller, id="resp_ab2")
    body: dict[str, Any] = {"tools": [TOOL], **fields}
    options = {"comparison_response_id": "resp_ab1", **body.pop("prompt_cache_options", {})}
    submission = served.parsed(body.pop("input", "hello"), prompt_cache_options=options, **body)
    found: dict[str, Any] = served.whole(submission, events(submission, "Yes", cached=cached))
    return dict(found["prompt_cache_diagnostics"])


def test_why_a_prompt_missed(served: Served) -> None:
    size = len(served.parsed(tools=[TOOL]).requests[0].prompt)
    assert compared(served, size - 1) == {"type": "cache_hit"}
    assert compared(served, 3) == {"type": "unavailable"}
    changed = compared(served, 3, input="hellx")
    assert changed == {
        "type": "cache_miss", "reason": "input_changed", "cache_missed_tokens": size - 3,
        "comparison_reusable_tokens": size - 2,
    }  # fmt: skip
    assert compared(served, 0, tools=[])["reason"] == "tools_changed"
    other = compared(served, 0, input="x", reasoning={"effort": "low"})
    assert other["reason"] == "reasoning_effort_changed"
    gone = {"comparison_response_id": "resp_no"}
    assert compared(served, 0, prompt_cache_options=gone) == {"type": "comparison_response_not_found"}
