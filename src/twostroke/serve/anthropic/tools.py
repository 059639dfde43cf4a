"""Tools and the choice among them.  A server tool has no schema here: it is left out, or refused where it is forced."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from twostroke.errors import InvalidParameter
from twostroke.serve.anthropic.blocks import needed
from twostroke.serve.anthropic.markers import Markers
from twostroke.serve.fields import Fields, shown
from twostroke.text.conversation import Tool, ToolChoice

log = logging.getLogger("twostroke.http")
MOST_NAME = 128  # characters
CHOICES = ("auto", "any", "tool", "none")


def tools(fields: Fields, markers: Markers) -> tuple[tuple[Tool, ...], ToolChoice]:
    """The tools the model is told of, in the order sent, and which it may call.  Raises `InvalidParameter`."""
    kept: list[Tool] = []
    foreign: list[str] = []
    for i, value in enumerate(fields.array("tools") or ()):
        tool = Fields(_object(value, f"tools[{i}]"), f"tools[{i}]")
        if tool.get("type") not in (None, "custom") and tool.get("input_schema") is None:
            foreign.append(_left_out(tool, kept, markers))
        else:
            kept.append(_tool(tool, markers, {other.name for other in kept}))
    choice = _choice(fields, kept, foreign)
    for name in foreign:
        log.warning("the server tool %s is ignored: nothing here runs it", shown(name))
    return tuple(kept), choice


def _object(value: object, path: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidParameter(f"{path} must be an object with name and input_schema, not {shown(value)}", param=path)
    return value


def _left_out(tool: Fields, kept: list[Tool], markers: Markers) -> str:
    """The name of a server tool; its breakpoint moves to the tool before, where the same text ends."""
    ttl_s = markers.read(tool)
    if ttl_s is not None and kept:
        kept[-1] = replace(kept[-1], ttl_s=ttl_s)
    return tool.text("name") or needed(tool, "type")


def _tool(tool: Fields, markers: Markers, taken: Collection[str]) -> Tool:
    name = needed(tool, "name")
    if not 0 < len(name) <= MOST_NAME:
        raise tool.wrong("name", f"1 to {MOST_NAME} characters")
    if name in taken:
        path = tool.at("name")
        raise InvalidParameter(f"{path} is {shown(name)}, as an earlier tool's; names must differ", param=path)
    schema = tool.object("input_schema")
    if schema is None:
        raise tool.wrong("input_schema", "a JSON schema of type object")
    if schema.get("type") != "object":
        raise schema.wrong("type", '"object"')
    return Tool(
        name, tool.text("description"), schema.values, tool.flag("strict", False), tool.path, markers.read(tool)
    )


def _choice(fields: Fields, kept: list[Tool], foreign: list[str]) -> ToolChoice:
    choice = fields.object("tool_choice")
    if choice is None:
        return ToolChoice()
    kind = choice.get("type")
    if kind not in CHOICES:
        raise choice.wrong("type", "one of " + ", ".join(CHOICES))
    parallel = not choice.flag("disable_parallel_tool_use", False)
    if kind == "tool":
        return ToolChoice("required", _named(choice, kept, foreign), parallel)
    if kind == "any":
        _check_any(choice, kept, foreign)
        return ToolChoice("required", parallel=parallel)
    return ToolChoice("none" if kind == "none" else "auto", parallel=parallel)


def _named(choice: Fields, kept: list[Tool], foreign: list[str]) -> str:
    name = needed(choice, "name")
    if name in foreign:
        raise InvalidParameter(
            f"tool_choice.name forces the server tool {shown(name)}, which nothing here runs; name a tool that has an "
            "input_schema",
            param="tool_choice.name",
        )
    if name not in {tool.name for tool in kept}:
        raise choice.wrong("name", "the name of one of the tools")
    return name


def _check_any(choice: Fields, kept: list[Tool], foreign: list[str]) -> None:
    if foreign:
        raise InvalidParameter(
            f"tool_choice forces a call, and nothing here runs the server tool {shown(foreign[0])}; leave it out",
            param="tool_choice",
        )
    if not kept:
        raise InvalidParameter("tool_choice forces a call and tools is empty; send tools", param="tool_choice")
