"""One structured line per finished answer: `key=value` pairs with units in the keys, and no text of anyone's."""

from __future__ import annotations

import logging

from twostroke.observe.phases import Finished

log = logging.getLogger("twostroke.requests")


def request_line(account: Finished) -> str:
    """The line for one account."""
    prefill, decode = account.phases.prefill, account.phases.decode
    values: dict[str, object] = {
        "request": account.request,
        "choice": account.choice,
        "finish": account.reason.value,
        "prompt": prefill.prompt_tokens,
        "cached": prefill.cached_tokens,
        "output": decode.output_tokens,
        "steps": decode.steps,
        "drafted": decode.drafted,
        "accepted": decode.accepted,
        "queue_ms": f"{account.phases.queue_ms:.1f}",
        "ttft_ms": f"{account.phases.ttft_ms:.1f}",
        "tpot_ms": f"{account.phases.tpot_ms:.2f}",
        "saved_ms": f"{prefill.saved_ms + decode.saved_ms:.1f}",
    }
    if prefill.miss_reason:
        values["miss"] = prefill.miss_reason
    if account.error:
        values["error"] = repr(account.error)
    return " ".join(f"{key}={value}" for key, value in values.items())


def log_finished(account: Finished) -> None:
    """The sink that writes the line: an error for a failure, information otherwise."""
    log.log(logging.ERROR if account.error else logging.INFO, "%s", request_line(account))
