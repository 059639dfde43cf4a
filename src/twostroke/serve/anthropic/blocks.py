"""Content blocks as clients send them: text, documents of text, and plain refusals of what a text model cannot read."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from twostroke.errors import InvalidParameter
from twostroke.serve.anthropic.markers import Markers
from twostroke.serve.fields import Fields, shown
from twostroke.text.conversation import Part

BINARY = ("image", "document", "container_upload")


def blocks(holder: Fields, name: str) -> Sequence[Fields]:
    """The blocks of a field; a string is one block of text, an absent field is none."""
    value, path = holder.get(name), holder.at(name)
    if value is None:
        return ()
    if isinstance(value, str):
        return (Fields({"type": "text", "text": value}, path),)
    if not isinstance(value, list):
        raise holder.wrong(name, "a string or an array of content blocks")
    return [_block(item, f"{path}[{i}]") for i, item in enumerate(value)]


def _block(value: object, path: str) -> Fields:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise InvalidParameter(f"{path} must be an object with a type, not {shown(value)}", param=path)
    return Fields(value, path)


def needed(block: Fields, name: str) -> str:
    """A text that must be there."""
    text = block.text(name)
    if text is None:
        raise block.wrong(name, "a string")
    return text


def part(block: Fields, markers: Markers) -> Part | None:
    """What a block says, None for empty text.

    Raises `InvalidParameter` for what is no text, and for a breakpoint on nothing.
    """
    if block.get("type") not in ("text", "document"):
        raise unreadable(block)
    text = needed(block, "text") if block.get("type") == "text" else _document(block)
    ttl_s = markers.read(block)
    if not text and ttl_s is not None:
        raise InvalidParameter(
            f"{block.path}.cache_control is set on empty text; move it to a block that says something",
            param=block.at("cache_control"),
        )
    return Part(text, block.path, ttl_s) if text else None


def parts(holder: Fields, name: str, markers: Markers) -> tuple[Part, ...]:
    """The parts of a field that may hold nothing but text."""
    found = [part(block, markers) for block in blocks(holder, name)]
    return tuple(item for item in found if item is not None)


def _document(block: Fields) -> str:
    """A document's title, context and text."""
    source = block.object("source")
    kind = source.get("type") if source else None
    if source is None or kind not in ("text", "content"):
        raise unreadable(block)
    citations = block.object("citations")
    if citations is not None and citations.flag("enabled", False):
        raise InvalidParameter(
            f"{citations.at('enabled')} is true, and answers here cite nothing; leave citations out",
            param=citations.at("enabled"),
        )
    if kind == "text":
        body = needed(source, "data")
    else:
        body = "\n".join(item.text for item in parts(source, "content", Markers()))
    return "\n".join(text for text in (block.text("title"), block.text("context"), body) if text)


def unreadable(block: Fields) -> InvalidParameter:
    """Why a block cannot be read; data that is no base64 is said to be that."""
    kind, source = block.get("type"), block.get("source")
    if kind in BINARY and isinstance(source, dict) and source.get("type") == "base64":
        inner = Fields(source, block.at("source"))
        try:
            base64.b64decode(needed(inner, "data"), validate=True)
        except (binascii.Error, ValueError):
            return inner.wrong("data", "valid base64")
    what = f"{shown(kind)} content" if kind in BINARY else f"the content type {shown(kind)}"
    return InvalidParameter(f"{block.path} holds {what}, which is not understood here; send text", param=block.path)
