"""The tools of a body: functions, groups of functions and free-text tools, all as functions the model may call.

A function of a group keeps its own name for the model where no other tool has it, and goes back to the client with its
group's name beside it.  A free-text tool is a function of one string.  Tools that a provider would run itself cannot be
honoured here: they are left out with a line in the log, and refused where the client insists on one.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twostroke.errors import InvalidParameter
from twostroke.serve.fields import Fields, shown
from twostroke.text.conversation import Tool, ToolChoice

log = logging.getLogger("twostroke.http")
MODES = ("auto", "none", "required")


@dataclass(frozen=True, slots=True)
class Known:
    """A tool as the client knows it."""

    name: str
    group: str | None = None  # the `namespace` tool it stands in
    custom: bool = False  # its input is plain text

    @property
    def qualified(self) -> str:
        return f"{self.group}__{self.name}" if self.group else self.name


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools of one request, and their names on both sides."""

    tools: tuple[Tool, ...] = ()
    known: Mapping[str, Known] = field(default_factory=dict)  # by the model's name for it

    def of(self, name: str) -> Known:
        """The client's side of a name the model used."""
        return self.known.get(name, Known(name))

    def find(self, name: str, group: str | None = None) -> str | None:
        """The model's name for a tool of the client's; a bare name finds a tool of a group where it is the only one."""
        exact = [here for here, known in self.known.items() if (known.name, known.group) == (name, group)]
        alike = [here for here, known in self.known.items() if known.name == name and group is None]
        return exact[0] if exact else alike[0] if len(alike) == 1 else None


def toolbox(fields: Fields) -> Toolbox:
    """The body's `tools`.  Raises `InvalidParameter`."""
    found = [entry for path, value in _listed(fields, "tools") for entry in _entries(path, value)]
    names = _names([known for known, _ in found], fields)
    tools = tuple(_renamed(tool, name) for name, (_, tool) in zip(names, found, strict=True))
    return Toolbox(tools, dict(zip(names, (known for known, _ in found), strict=True)))


def choice(fields: Fields, box: Toolbox) -> ToolChoice:
    """`tool_choice` and `parallel_tool_calls`.  Raises `InvalidParameter` for a tool that cannot be called here."""
    parallel = fields.flag("parallel_tool_calls", True)
    value = fields.get("tool_choice")
    if value is None or isinstance(value, str):
        return ToolChoice(_mode(fields, value or "auto", box), parallel=parallel)
    wanted = fields.object("tool_choice") or fields
    match wanted.get("type"):
        case "function" | "custom":
            return ToolChoice("required", _one(wanted, box), parallel)
        case "allowed_tools":
            return _allowed(wanted, box, parallel)
        case other:
            raise InvalidParameter(
                f"{wanted.at('type')} {shown(other)} names a tool this server cannot run; "
                "name a function, or send auto",
                param=wanted.at("type"),
            )


def _listed(fields: Fields, name: str) -> list[tuple[str, Fields]]:
    """The objects of an array, each under its path."""
    found = []
    for index, value in enumerate(fields.array(name) or ()):
        path = f"{fields.at(name)}[{index}]"
        if not isinstance(value, dict):
            raise InvalidParameter(f"{path} must be an object, not {shown(value)}", param=path)
        found.append((path, Fields(value, path)))
    return found


def _entries(path: str, tool: Fields) -> Sequence[tuple[Known, Tool]]:
    match tool.get("type"):
        case "function" | "custom":
            return [_entry(path, tool, None)]
        case "namespace":
            return _group(tool)
        case str() as hosted:
            log.warning("the tool %s (%s) cannot run here and is left out", shown(path), shown(hosted))
            return []
        case _:
            raise tool.wrong("type", '"function", "custom" or "namespace"')


def _group(tool: Fields) -> Sequence[tuple[Known, Tool]]:
    """The functions of a group; what the group says of itself stands before the first one's description."""
    name, about = _name(tool), tool.text("description")
    inner = _listed(tool, "tools")
    for _, one in inner:
        if one.get("type") not in ("function", "custom"):
            raise one.wrong("type", '"function" or "custom"')
    found = [_entry(path, one, name) for path, one in inner]
    if found and about:
        known, first = found[0]
        text = f"{name}: {about}" + (f"\n\n{first.description}" if first.description else "")
        found[0] = known, Tool(first.name, text, first.parameters, first.strict, first.path)
    return found


def _entry(path: str, tool: Fields, group: str | None) -> tuple[Known, Tool]:
    name, about = _name(tool), tool.text("description")
    if tool.get("type") == "custom":
        return Known(name, group, True), Tool(name, about, _text_input(tool), True, path)
    parameters = tool.object("parameters")
    schema = None if parameters is None else parameters.values
    return Known(name, group), Tool(name, about, schema, tool.flag("strict", False), path)


def _text_input(tool: Fields) -> Mapping[str, Any]:
    """The schema of a free-text tool.  Its grammar is told to the model and not enforced: it is inside a string."""
    text: dict[str, Any] = {"type": "string"}
    format = tool.object("format")
    if format is not None and format.get("type") == "grammar":
        syntax, grammar = format.text("syntax"), format.text("definition")
        if syntax not in ("lark", "regex"):
            raise format.wrong("syntax", '"lark" or "regex"')
        if grammar is None:
            raise format.wrong("definition", "the grammar's text")
        text["description"] = f"Text of this {syntax} grammar:\n{grammar}"
    elif format is not None and format.get("type") != "text":
        raise format.wrong("type", '"text" or "grammar"')
    return {"type": "object", "properties": {"input": text}, "required": ["input"], "additionalProperties": False}


def _name(tool: Fields) -> str:
    name = tool.text("name")
    if not name:
        raise tool.wrong("name", "a tool's name")
    return name


def _names(known: Sequence[Known], fields: Fields) -> Sequence[str]:
    """The model's names: a tool's own where it is the only one, else its group's before it."""
    times = Counter(one.name for one in known)
    names = [one.name if times[one.name] == 1 else one.qualified for one in known]
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidParameter(
                f"{fields.at('tools')} holds {shown(name)} twice; give each tool a name", param="tools"
            )
    return names


def _renamed(tool: Tool, name: str) -> Tool:
    return Tool(name, tool.description, tool.parameters, tool.strict, tool.path)


def _mode(fields: Fields, value: str, box: Toolbox) -> Any:
    if value not in MODES:
        raise fields.wrong("tool_choice", "auto, none, required or an object that names a tool")
    if value == "required" and not box.tools:
        raise InvalidParameter(
            "tool_choice is required and no tool can be called; send a function", param="tool_choice"
        )
    return value


def _one(wanted: Fields, box: Toolbox) -> str:
    name, group = wanted.text("name"), wanted.text("namespace")
    found = None if name is None else box.find(name, group)
    if found is None:
        raise InvalidParameter(
            f"{wanted.at('name')} {shown(name)} is none of the tools that can be called; have: "
            f"{', '.join(sorted(box.known)) or 'none'}",
            param=wanted.at("name"),
        )
    return found


def _allowed(wanted: Fields, box: Toolbox, parallel: bool) -> ToolChoice:
    """Some of the tools; all of them stay in the prompt.  Hosted ones among them are left out as everywhere."""
    mode = wanted.get("mode")
    if mode not in ("auto", "required"):
        raise wanted.wrong("mode", '"auto" or "required"')
    named = [one for _, one in _listed(wanted, "tools") if one.get("type") in ("function", "custom")]
    names = tuple(_one(one, box) for one in named)
    if mode == "required" and not names:
        raise wanted.wrong("tools", "at least one function of tools")
    return ToolChoice(mode, parallel=parallel, allowed=names)
