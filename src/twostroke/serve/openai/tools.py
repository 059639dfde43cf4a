"""Reads which functions a model may call: `tools` and `tool_choice`, or the older `functions` and `function_call`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from twostroke.errors import InvalidParameter
from twostroke.serve.fields import Fields, shown
from twostroke.text.conversation import Tool, ToolChoice

NAME = re.compile(r"[\w.:/-]{1,128}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What may be called, and whether the client speaks of functions in the older way."""

    tools: tuple[Tool, ...] = ()
    choice: ToolChoice = field(default_factory=ToolChoice)
    legacy: bool = False


def toolbox(fields: Fields) -> Toolbox:
    """Raises `InvalidParameter` for a tool that is none, or a choice that no tool fits."""
    tools, functions = fields.array("tools"), fields.array("functions")
    if functions is not None:
        if tools is not None:
            raise InvalidParameter("functions and tools say the same; send tools alone", param="functions")
        found = tuple(_function(value, f"functions[{i}]", f"functions[{i}]") for i, value in enumerate(functions))
        return Toolbox(_distinct(found), _legacy_choice(fields, found), legacy=True)
    found = tuple(_tool(value, f"tools[{i}]") for i, value in enumerate(tools or ()))
    return Toolbox(_distinct(found), _choice(fields, found))


def _tool(value: Any, path: str) -> Tool:
    tool = Fields(value if isinstance(value, dict) else {}, path)
    if tool.get("type") != "function":
        kind = f"of type {shown(tool.get('type'))}" if isinstance(value, dict) else shown(value)
        raise InvalidParameter(f'{path} is {kind}; only {{"type": "function", …}} is supported here', param=path)
    return _function(tool.get("function"), tool.at("function"), path)


def _function(value: Any, path: str, part: str) -> Tool:
    if not isinstance(value, dict):
        raise InvalidParameter(f"{path} must be an object with a name and parameters, not {shown(value)}", param=path)
    function = Fields(value, path)
    name = function.text("name")
    if name is None or not NAME.fullmatch(name):
        raise function.wrong("name", "1 to 128 letters, digits or any of _ - . : /")
    parameters = function.object("parameters")
    if parameters is not None and parameters.get("type") not in (None, "object"):
        raise parameters.wrong("type", '"object": arguments are named')
    return Tool(
        name,
        function.text("description"),
        None if parameters is None else parameters.values,
        strict=function.flag("strict", False),
        path=part,
    )


def _distinct(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    names = [tool.name for tool in tools]
    for i, tool in enumerate(tools):
        if tool.name in names[:i]:
            raise InvalidParameter(
                f"{tool.path} has the name {shown(tool.name)}, as one before it has; give each its own", param=tool.path
            )
    return tools


def _choice(fields: Fields, tools: tuple[Tool, ...]) -> ToolChoice:
    parallel = fields.flag("parallel_tool_calls", True)
    value = fields.get("tool_choice")
    if value in (None, "auto"):
        return ToolChoice(parallel=parallel)
    if value == "none":
        return ToolChoice("none", parallel=parallel)
    if value == "required":
        _known(tools, None, "tool_choice")
        return ToolChoice("required", parallel=parallel)
    if not isinstance(value, dict):
        raise fields.wrong("tool_choice", '"none", "auto", "required" or an object that names a function')
    return _chosen(Fields(value, "tool_choice"), tools, parallel)


def _chosen(choice: Fields, tools: tuple[Tool, ...], parallel: bool) -> ToolChoice:
    if choice.get("type") == "allowed_tools":
        allowed = choice.object("allowed_tools") or choice
        mode = allowed.text("mode") or "auto"
        if mode not in ("auto", "required"):
            raise allowed.wrong("mode", '"auto" or "required"')
        names = tuple(
            _named(Fields(value if isinstance(value, dict) else {}, f"{allowed.at('tools')}[{i}]"), tools)
            for i, value in enumerate(allowed.array("tools") or ())
        )
        return ToolChoice("required" if mode == "required" else "auto", parallel=parallel, allowed=names)
    return ToolChoice("required", _named(choice, tools), parallel)


def _named(choice: Fields, tools: tuple[Tool, ...]) -> str:
    if choice.get("type") != "function":
        raise choice.wrong("type", '"function"')
    function = choice.object("function")
    if function is None:
        raise choice.wrong("function", "an object with the name of a function")
    return _known(tools, function.text("name") or "", function.at("name"))


def _legacy_choice(fields: Fields, tools: tuple[Tool, ...]) -> ToolChoice:
    value = fields.get("function_call")
    if value in (None, "auto"):
        return ToolChoice(parallel=False)
    if value == "none":
        return ToolChoice("none", parallel=False)
    if not isinstance(value, dict):
        raise fields.wrong("function_call", '"none", "auto" or an object that names a function')
    choice = Fields(value, "function_call")
    return ToolChoice("required", _known(tools, choice.text("name") or "", choice.at("name")), parallel=False)


def _known(tools: tuple[Tool, ...], name: str | None, path: str) -> str:
    """The name of one of the tools; with None, only that there are any."""
    names = [tool.name for tool in tools]
    if not names:
        raise InvalidParameter(f"{path} asks for a call, and there are no tools; send tools", param=path)
    if name is not None and name not in names:
        raise InvalidParameter(f"{path} is {shown(name)}, which is none of the tools: {', '.join(names)}", param=path)
    return name or ""
