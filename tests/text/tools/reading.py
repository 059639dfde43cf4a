"""Reads texts whole and in pieces, and puts what was read into a form that does not show where it was cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hypothesis import strategies as st

from twostroke.text.conversation import Tool
from twostroke.text.pieces import CallArguments, CallEnd, CallStart, Piece, Reader, Thought, Words
from twostroke.text.tools import Family

WEATHER = Tool(
    "get_weather",
    "Weather of a city",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "units": {"enum": ["C", "F"]},
            "place": {"type": ["object", "null"]},
            "exact": {"type": "boolean"},
        },
        "required": ["city"],
    },
    path="tools[0]",
)
NOW = Tool("now", path="tools[1]")
TOOLS = (WEATHER, NOW)
Read = list[tuple[str, ...]]  # ("words", text), ("thought", text), ("call", name, arguments, "ended" or "open")


def summed(pieces: Iterable[Piece]) -> Read:
    """Words, thoughts and calls in order, neighbours of one kind put together."""
    read: Read = []
    calls: dict[int, int] = {}
    for piece in pieces:
        match piece:
            case Words(text) | Thought(text):
                kind = "words" if isinstance(piece, Words) else "thought"
                assert text, "an empty piece says nothing"
                if read and read[-1][0] == kind:
                    read[-1] = (kind, read[-1][1] + text)
                else:
                    read.append((kind, text))
            case CallStart(index, name):
                assert index == len(calls), "calls count from 0"
                calls[index] = len(read)
                read.append(("call", name, "", "open"))
            case CallArguments(index, text):
                _, name, before, state = read[calls[index]]
                assert state == "open"
                read[calls[index]] = ("call", name, before + text, state)
            case CallEnd(index):
                _, name, arguments, state = read[calls[index]]
                assert state == "open"
                read[calls[index]] = ("call", name, arguments, "ended")
    return read


def pieces_of(reader: Reader, feeds: Iterable[str]) -> list[Piece]:
    """Everything a reader says."""
    pieces = [piece for text in feeds for piece in reader.feed(text)]
    return [*pieces, *reader.flush()]


def read(family: Family, text: str, tools: Sequence[Tool] = TOOLS) -> Read:
    """What a text says, which must not depend on how it is cut: whole, in single characters, in threes."""
    return same(lambda: family.reader(tools), text)


def same(reader: Callable[[], Reader], text: str) -> Read:
    """What a text says, if that is the same for some ways to cut it."""
    whole = summed(pieces_of(reader(), [text]))
    for width in (1, 2, 3, 7):
        assert summed(pieces_of(reader(), cut(text, width))) == whole, f"cut every {width}"
    return whole


def cut(text: str, width: int) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


def call(name: str, arguments: str = "{}") -> tuple[str, ...]:
    return ("call", name, arguments, "ended")


def words(text: str) -> tuple[str, ...]:
    return ("words", text)


def from_alphabet(*bits: str) -> st.SearchStrategy[str]:
    """Texts of a form's own bits, and others, in any order."""
    common = (
        '"get_weather"',
        "get_weather",
        "now",
        "x",
        " ",
        "\n",
        "\r\n",
        "{",
        "}",
        '"',
        "\\",
        "é",
        "[",
        "]",
        ",",
        ":",
    )
    return st.lists(st.sampled_from((*bits, *common)), max_size=24).map("".join)
