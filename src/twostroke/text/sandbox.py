"""Run a template that came out of a file: jinja2's sandbox, with bounds on loop rounds and on text sizes.

The dialect is that of Hugging Face's chat templates (trim_blocks, lstrip_blocks, loop controls, `tojson` that keeps
Unicode, `raise_exception`, `generation` blocks).  Invariant: a template reaches nothing but its variables, and its
failures are our errors.  Knows nothing about messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes, pass_context
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from twostroke.errors import InvalidParameter, ModelError

MAX_STEPS = 1_000_000  # rounds of all loops of one rendering
MAX_CHARACTERS = 1 << 25  # of a rendering, and of any text put together on the way
_MAX_BITS = 1 << 12  # of a whole number
_STEPS = "__steps"


def compile_template(source: str) -> jinja2.Template:
    """The template, ready to run.

    Raises:
        ModelError: it does not parse; names the line.
    """
    environment = _Environment()
    try:
        tree = _Bounds(environment).visit(environment.parse(source))
        return environment.from_string(tree)
    except jinja2.TemplateSyntaxError as error:
        raise ModelError(f"the file's chat template does not parse: line {error.lineno}: {error.message}") from error


def run_template(template: jinja2.Template, variables: Mapping[str, object]) -> str:
    """What the template writes.

    Raises:
        InvalidParameter: it refused these variables (with its own message), failed on them or exceeded a bound.
    """
    try:
        return "".join(_bounded_pieces(template.generate({**variables, _STEPS: [0]})))
    except jinja2.TemplateError as error:
        raise InvalidParameter(f"the model's chat template says: {error.message}", param="messages") from error
    except Exception as error:  # the template's own mistakes, of any kind: it is code from a file
        what = f"{type(error).__name__}: {error}"
        raise InvalidParameter(
            f"the model's chat template fails on these messages: {what}", param="messages"
        ) from error


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox with the names that chat templates expect."""

    intercepted_binops = frozenset(("+", "*", "**"))

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation], autoescape=False
        )
        self.filters.update(tojson=_tojson, __bounded=_bounded_rounds, __sized=_sized)
        self.globals.update(raise_exception=_raise_exception)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The sandbox's hook for the operators named above: refuses those whose result would be too long."""
        if operator == "+":
            _judge_size(_length(left) + _length(right))
        elif isinstance(left, int) and isinstance(right, int):
            _judge_number(left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length())
        elif operator == "*":
            _judge_size(max(_length(left) * _count(right), _length(right) * _count(left)))
        return super().call_binop(context, operator, left, right)


class _Bounds(NodeTransformer):
    """Rewrites a template so that every round of every loop is counted and every `~` is measured."""

    def __init__(self, environment: jinja2.Environment) -> None:
        self._environment = environment

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = self._filtered(node.iter, "__bounded")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        self.generic_visit(node)
        return self._filtered(node, "__sized")

    def _filtered(self, node: nodes.Node, name: str) -> nodes.Filter:
        wrapped = nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)
        wrapped.set_environment(self._environment)
        return wrapped


class _Generation(Extension):
    """`{% generation %}…{% endgeneration %}` marks the assistant's words for training; here it is its content."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@pass_context
def _bounded_rounds(context: Context, items: Iterable[object]) -> Iterator[object]:
    steps = context[_STEPS]
    for item in items:
        steps[0] += 1
        if steps[0] > MAX_STEPS:
            raise jinja2.TemplateRuntimeError(f"more than {MAX_STEPS} loop rounds; the template does not end")
        yield item


def _bounded_pieces(pieces: Iterable[str]) -> Iterator[str]:
    written = 0
    for piece in pieces:
        written += len(piece)
        _judge_size(written)
        yield piece


def _sized(text: str) -> str:
    _judge_size(len(text))
    return text


def _judge_size(characters: int) -> None:
    if characters > MAX_CHARACTERS:
        raise jinja2.TemplateRuntimeError(f"a text of more than {MAX_CHARACTERS} characters")


def _judge_number(bits: int) -> None:
    if bits > _MAX_BITS:
        raise jinja2.TemplateRuntimeError(f"a number of more than {_MAX_BITS} bits")


def _length(value: object) -> int:
    return len(value) if isinstance(value, str | list | tuple) else 0


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _tojson(value: object, indent: int | None = None, **options: Any) -> str:
    return json.dumps(value, **{"ensure_ascii": False, "indent": indent, **options})


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)
