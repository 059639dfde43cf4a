"""Templates speak Hugging Face's dialect, end, and fail as our errors."""

from __future__ import annotations

import pytest

from twostroke.errors import InvalidParameter, ModelError
from twostroke.text import sandbox
from twostroke.text.sandbox import MAX_CHARACTERS, MAX_STEPS, compile_template, run_template

ROUNDS = "{% for i in range(50000) %}{% for j in range(50000) %}{% endfor %}{% endfor %}"


def run(source: str, **variables: object) -> str:
    return run_template(compile_template(source), variables)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("  {% if true %}\nx\n  {% endif %}\n", "x\n"),
        ("{% for i in [1,2,3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "13"),
        ("{% for i in [1,2,3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "1"),
        ("{% for i in 'ab' %}{{ loop.index }}{{ loop.last }}{{ loop.length }}{% endfor %}", "1False22True2"),
        ("{% for i in nothing %}{{ i }}{% else %}none{% endfor %}", "none"),
        ("{% for i in [[1],[2]] recursive %}{{ i if i is integer else loop(i) }}{% endfor %}", "12"),
        ("{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}", "a1"),
        ("{{ d | tojson }}", '{"a": 1}'),
        ("{{ 'é<>' | tojson }}", '"é<>"'),
        ("{{ d | tojson(indent=2) }}", '{\n  "a": 1\n}'),
        ("{% generation %}{{ d.a }}{% endgeneration %}", "1"),
        ("{% set ns = namespace(n=0) %}{% for i in [1,2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "3"),
        ("{{ 'a' ~ 1 ~ 'b' }}{{ 'ab' * 2 }}{{ 2 ** 3 }}{{ [1] + [2] }}", "a1babab8[1, 2]"),
        ("{{ nothing }}{{ '<&>' }}", "<&>"),
    ],
)
def test_the_dialect(source: str, text: str) -> None:
    assert run(source, d={"a": 1}) == text


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (ROUNDS, f"more than {MAX_STEPS} loop rounds"),
        ("{% for i in range(10**9) %}{% endfor %}", "Range too big"),
        ("{{ 'a' * 10**10 }}", f"more than {MAX_CHARACTERS} characters"),
        ("{{ 10**10 * [1] }}", f"more than {MAX_CHARACTERS} characters"),
        ("{{ 10 ** (10 ** 10) }}", "bits"),
        ("{% set n = namespace(x=3) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}", "bits"),
        ("{% set n = namespace(x='aa') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}", "characters"),
        ("{% set n = namespace(x='aa') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}", "characters"),
        ("{% set x = 'a' * 1000 %}{% for i in range(50000) %}{{ x }}{% endfor %}", "characters"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError"),
    ],
)
def test_a_template_that_does_not_end_is_ended(source: str, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        run(source)


def test_rounds_are_counted_exactly_and_for_each_run_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "MAX_STEPS", 12)
    template = compile_template("{% for i in range(n) %}{% for j in range(3) %}{% endfor %}{% endfor %}ok")
    assert [run_template(template, {"n": 3}) for _ in range(3)] == ["ok"] * 3
    with pytest.raises(InvalidParameter, match="more than 12 loop rounds"):
        run_template(template, {"n": 4})


def test_the_template_speaks_for_itself() -> None:
    with pytest.raises(InvalidParameter, match="the model's chat template says: roles must alternate"):
        run("{{ raise_exception('roles must alternate') }}")


@pytest.mark.parametrize("source", ["{{ 1 / 0 }}", "{{ d + 'x' }}", "{{ none.x.y }}", "{{ d | tojson(nonsense=1) }}"])
def test_its_own_mistakes_are_named(source: str) -> None:
    with pytest.raises(InvalidParameter, match="the model's chat template"):
        run(source, d={"a": 1})


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ d.update({'b': 2}) }}",
        "{{ items.append(1) }}",
        "{{ run.__globals__['run'] }}",
        "{% include '/etc/passwd' %}",
    ],
)
def test_it_reaches_nothing_but_its_variables(source: str) -> None:
    data: dict[str, object] = {"d": {"a": 1}, "items": [0], "run": run}
    with pytest.raises(InvalidParameter):
        run_template(compile_template(source), data)
    assert data["d"] == {"a": 1}
    assert data["items"] == [0]


def test_a_template_that_does_not_parse_is_the_files_fault() -> None:
    with pytest.raises(ModelError, match="does not parse: line 2"):
        compile_template("\n{% for %}")
