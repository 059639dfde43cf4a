"""Why a prompt did not begin as the one before it: what is remembered of earlier requests, and how two compare.

Only digests and counts are kept, a bounded number per server and namespace, so that no tenant learns of another's.
"""

from __future__ import annotations

import json
import threading
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from weakref import WeakKeyDictionary

from twostroke.serve.host import Host
from twostroke.serve.service import Service
from twostroke.serve.submission import Json
from twostroke.text.conversation import Conversation, Message
from twostroke.text.prompt import Prompt

MOST = 256  # requests remembered of one namespace
MOST_NAMESPACES = 256


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What one request's prompt was made of.  `ends`: (position, digest of the tokens before it) of every part."""

    model: str
    system: bytes
    tools: bytes
    messages: tuple[bytes, ...]
    rest: bytes  # what else a template reads
    tokens: int
    ends: tuple[tuple[int, bytes], ...]


def fingerprint(model: str, conversation: Conversation, prompt: Prompt) -> Fingerprint:
    """The fingerprint of a request.  Cache breakpoints and paths are no part of it."""
    own = [message for message in conversation.messages if message.path == "system"]
    said = [message for message in conversation.messages if message.path != "system"]
    tools = [[tool.name, tool.description, tool.parameters, tool.strict] for tool in conversation.tools]
    choice = conversation.choice
    rest = [choice.mode, choice.name, choice.parallel, conversation.thinking, dict(conversation.arguments)]
    return Fingerprint(
        model,
        _digest([_plain(message) for message in own]),
        _digest(tools),
        tuple(_digest(_plain(message)) for message in said),
        _digest(rest),
        len(prompt.ids),
        tuple(_ends(prompt)),
    )


def _plain(message: Message) -> object:
    calls = [[call.id, call.name, call.arguments] for call in message.calls]
    return [message.role, message.text, message.reasoning, calls, message.call_id]


def _digest(value: object) -> bytes:
    return sha256(json.dumps(value, default=str).encode()).digest()


def _ends(prompt: Prompt) -> Sequence[tuple[int, bytes]]:
    so_far, found = sha256(), []
    for start, end in pairwise((0, *sorted({part.end for part in prompt.parts}), len(prompt.ids))):
        so_far.update(array("q", prompt.ids[start:end]).tobytes())
        found.append((end, so_far.digest()))
    return found


def reason(before: Fingerprint, now: Fingerprint) -> Json | None:
    """Why the prompt `now` does not begin as `before`, None where it does."""
    if before.model != now.model:
        kind = "model_changed"
    elif before.system != now.system:
        kind = "system_changed"
    elif before.tools != now.tools:
        kind = "tools_changed"
    elif before.messages != now.messages[: len(before.messages)]:
        kind = "messages_changed"
    else:
        return {"type": "unavailable"} if before.rest != now.rest else None
    return {"type": kind, "cache_missed_input_tokens": _missed(before, now)}


def _missed(before: Fingerprint, now: Fingerprint) -> int:
    """Tokens of the earlier prompt that would have been reused and are not, to the end of a part."""
    agreed = max((end for end, _ in set(before.ends) & set(now.ends)), default=0)
    return max(min(before.tokens, now.tokens) - agreed, 0)


class Memory:
    """The fingerprints of one server's requests by message id, the oldest forgotten first.  Safe to share."""

    def __init__(self, most: int = MOST, most_namespaces: int = MOST_NAMESPACES) -> None:
        self._most, self._most_namespaces = most, most_namespaces
        self._known: OrderedDict[str, OrderedDict[str, Fingerprint]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, namespace: str, message: str, made_of: Fingerprint) -> None:
        """Keep a request's fingerprint under the id of its answer."""
        with self._lock:
            own = self._known.setdefault(namespace, OrderedDict())
            self._known.move_to_end(namespace)
            own[message] = made_of
            if len(own) > self._most:
                own.popitem(last=False)
            if len(self._known) > self._most_namespaces:
                self._known.popitem(last=False)

    def compare(self, namespace: str, previous: str, now: Fingerprint) -> Json | None:
        """The `diagnostics` of a request that follows the message `previous`; None where the prefix is kept."""
        with self._lock:
            own = self._known.get(namespace)
            before = own.get(previous) if own else None
        missed = {"type": "previous_message_not_found"} if before is None else reason(before, now)
        return None if missed is None else {"cache_miss_reason": missed}


_memories: WeakKeyDictionary[Host, Memory] = WeakKeyDictionary()
_creating = threading.Lock()


def memory(service: Service) -> Memory:
    """The memory of a server; it goes when the server's host goes."""
    with _creating:
        return _memories.setdefault(service.host, Memory())
