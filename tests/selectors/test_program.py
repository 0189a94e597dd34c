"""Programs: any text gets an answer, results have their types, devices their domains, costs their limit."""

from __future__ import annotations

import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.api.resource import DeviceAttribute, DeviceCapacity
from extender.model.device import DeviceFacts
from extender.selectors import (
    CompileError,
    Environment,
    Program,
    Value,
    Verdict,
    compile,  # noqa: A004 - the seam's name
    prepare,
)
from extender.selectors.library.regex import precompiled
from extender.selectors.semver import Semver

GPU = DeviceFacts(
    driver="gpu.example.com",
    attributes={
        "model": DeviceAttribute(string="A100"),
        "index": DeviceAttribute(int=3),
        "version": DeviceAttribute(version="1.2.3"),
        "numa": DeviceAttribute(ints=[0, 1]),
        "other.example.com/rack": DeviceAttribute(string="r1"),
    },
    capacity={"memory": DeviceCapacity(value="40Gi")},
)


def program(text: str, environment: Environment | None = None) -> Program:
    compiled = compile(text, environment)
    assert isinstance(compiled, Program), compiled
    return compiled


def refusal(text: str, environment: Environment | None = None) -> CompileError:
    compiled = compile(text, environment)
    assert isinstance(compiled, CompileError)
    return compiled


HOSTILE = {
    "10,000 round brackets": "(" * 10_000,
    "10,000 square brackets": "[" * 10_000,
    "10,000 curly brackets": "{" * 10_000,
    "10,000 calls": "f(" * 5_000,
    "10,000 nots": "!" * 10_000,
    "a long path": "a" + ".b" * 5_000,
    "a long sum": "1" + "+1" * 5_000,
    "a long ternary": "a?b:" * 2_500,
    "quotes": '"' * 10_000,
    "back-ticks": "`" * 10_000,
    "control characters": "".join(map(chr, range(32))) * 300,
    "a lone surrogate": "\ud800",
    "a lone surrogate in a string": 'device.driver == "\udfff"',
    "a null byte": "true\x00",
    "a huge integer": "9" * 10_000,
    "a huge hexadecimal": "0x" + "f" * 10_000,
    "a huge double": "1e" + "9" * 10_000,
    "doubling macros": "x" + ".optMap(a, a)" * 700,
    "an endless comment": "//" + "/" * 10_000,
    "a deep pattern": "'a'.matches('" + "(" * 5_000 + "')",
    "a constant map with keys that Go can't hash": "{b'a': 1}.size() == 1",
    "an optional entry of unknown type": "{1: 1, ?2: dyn(2)}.size() == 1",
    "minus signs": "-" * 10_240,
    "minus signs before a name": "-" * 10_239 + "x",
    "nots and minus signs": "!-" * 5_120,
    "a long name": "a" * 10_240,
    "a long call": "a" * 10_230 + "()",
    "comments": "//\n" * 3_400,
    "open brackets of all kinds": "([{" * 3_400,
    "closing brackets": ")" * 10_000 + "]}",
    "question marks": "?" * 10_240,
    "backslashes in a string": "'" + "\\" * 10_201 + "'",
    "C1 controls": "".join(map(chr, range(0x80, 0xA0))) * 320,
    "nested loops over nothing": "x.all(x," * 700 + "true" + ")" * 700,
    "names that nobody declared": "||".join(f"x{n}" for n in range(1_500)),
    "nested optMap": "optional.of(1).optMap(a," * 200 + "1" + ")" * 200,
    "nothing": "",
    "blanks": " \n\t ",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_gives_a_compile_error_with_its_place(text: str) -> None:
    began = time.process_time()
    error = refusal(text)
    assert time.process_time() - began < 5.0  # well below 1 s on a machine of its own
    assert error.line >= 1
    assert error.column >= 1
    assert error.message


@settings(max_examples=300)
@given(st.text(max_size=200))
def test_any_text_gives_an_answer(text: str) -> None:
    compiled = compile(text)
    if isinstance(compiled, Program):
        assert isinstance(compiled.evaluate(GPU), Verdict)
    else:
        assert compiled.line >= 1
        assert "internal error" not in compiled.message


_TOKENS = ["device", ".", "attributes", "[", "]", "'x'", "(", ")", "&&", "||", "!", "==", "1", "1u", "2.5"]
_TOKENS += [
    "{",
    "}",
    ":",
    "?",
    ",",
    "+",
    "-",
    "in",
    "has",
    "all",
    "x",
    "map",
    "matches",
    "quantity",
    "dyn",
    "null",
]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(_TOKENS), max_size=25))
def test_any_row_of_tokens_gives_an_answer(tokens: list[str]) -> None:
    compiled = compile(" ".join(tokens))
    if isinstance(compiled, Program):
        assert isinstance(compiled.evaluate(GPU), Verdict)
    else:
        assert compiled.issues
        assert "internal error" not in compiled.message


def test_a_fault_of_the_compiler_is_an_answer_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*_: object) -> None:
        raise TypeError("as in a bug")

    monkeypatch.setattr("extender.selectors.program.validate", faulty)
    assert "internal error: TypeError('as in a bug')" in refusal("true").message


def test_the_recursion_limit_is_left_as_it_was() -> None:
    before = sys.getrecursionlimit()
    refusal("(" * 10_000)
    nested = program("!(false||true&&" * 200 + "true" + ")" * 200)
    assert nested.evaluate(GPU).error is None
    assert sys.getrecursionlimit() == before


def test_an_error_shows_the_line_with_a_mark_below_it() -> None:
    error = refusal("device.driver == 'a' &&\n  device.name == 'b'")
    assert (error.line, error.column) == (2, 9)
    assert error.message == (
        "compilation failed: ERROR: <input>:2:9: undefined field 'name'\n"
        " |   device.name == 'b'\n"
        " | ........^"
    )


def test_all_type_errors_are_reported_in_their_order() -> None:
    error = refusal("foo == 1 || bar == 2")
    assert [issue.message for issue in error.issues] == [
        "undeclared reference to 'foo' (in container '')",
        "undeclared reference to 'bar' (in container '')",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("device.attributes['gpu.example.com'].model == 'A100'", True),
        ("device.attributes['other.example.com'].rack == 'r1'", True),
        ("has(device.attributes['gpu.example.com'].rack)", False),
        ("device.attributes['no.such'].size() == 0", True),
        ("'no.such' in device.attributes", False),
        ("device.capacity['gpu.example.com'].memory.compareTo(quantity('40960Mi')) == 0", True),
        ("device.allowMultipleAllocations", False),
    ],
)
def test_names_belong_to_the_domain_that_they_say_or_the_drivers(text: str, expected: bool) -> None:
    assert program(text).evaluate(GPU).value is expected


def test_of_a_name_published_twice_the_qualified_one_counts() -> None:
    facts = DeviceFacts(
        driver="d",
        attributes={"d/x": DeviceAttribute(int=1), "x": DeviceAttribute(int=2)},
    )
    assert program("device.attributes['d'].x == 1").evaluate(facts).value is True


def test_a_bad_version_makes_the_whole_device_an_error() -> None:
    facts = DeviceFacts(driver="d", attributes={"v": DeviceAttribute(version="1.x")})
    verdict = program("true").evaluate(facts)
    assert verdict.value is None
    assert verdict.error is not None
    assert verdict.error.startswith("attribute v: parse semantic version:")


def test_list_attributes_are_an_error_before_1_36() -> None:
    text = "device.driver == 'gpu.example.com'"
    assert program(text, Environment(version=(1, 36))).evaluate(GPU).value is True
    assert program(text, Environment(version=(1, 35))).evaluate(GPU).error == (
        "attribute numa: unsupported attribute value"
    )


def test_a_prepared_device_gives_the_same_verdict() -> None:
    compiled = program("device.attributes['gpu.example.com'].index > 2")
    assert compiled.evaluate(prepare(GPU)) == compiled.evaluate(GPU)


def test_the_cost_limit_stops_an_evaluation_right_behind_it() -> None:
    text = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, a + b > 0))"
    compiled = program(text, Environment(cost_limit=100))
    assert compiled.evaluate(GPU) == Verdict(None, "operation cancelled: actual cost limit exceeded", 101)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("device.attributes['gpu.example.com'].model + '-x'", "A100-x"),
        ("device.attributes['gpu.example.com'].index", 3),
        ("device.driver == 'x'", False),
        ("[1, 2]", [1, 2]),
    ],
)
def test_derived_attributes_yield_scalars_and_lists(text: str, value: object) -> None:
    environment = Environment(derived=True)
    if "+" in text:
        text = f"string({text})"
    result = program(text, environment).evaluate_value(GPU)
    assert isinstance(result, Value)
    assert result.error is None
    assert result.value == value


def test_a_derived_version_stays_a_version() -> None:
    environment = Environment(derived=True)
    result = program("device.attributes['gpu.example.com'].version", environment).evaluate_value(GPU)
    assert isinstance(result.value, Semver)
    assert str(result.value) == "1.2.3"


def test_a_derived_map_does_not_compile() -> None:
    error = refusal("{'a': 1}", Environment(derived=True))
    assert error.message.startswith("must evaluate to a primitive scalar (string, integer, boolean, semver)")


def test_new_expressions_know_the_libraries_of_the_release_before() -> None:
    text = "['a'].includes('a')"
    assert program(text).evaluate(GPU).value is True
    assert "includes" in refusal(text, Environment(stored=False)).message
    assert program(text, Environment(stored=False, list_attributes=True)).evaluate(GPU).value is True


def test_a_gate_takes_the_field_from_new_expressions_only() -> None:
    off = Environment(stored=False, consumable_capacity=False)
    assert "undefined field" in refusal("device.allowMultipleAllocations", off).message
    program("device.allowMultipleAllocations", Environment(consumable_capacity=False))


def test_memory_of_verdicts_never_mixes_costs() -> None:
    compiled = program("device.driver.startsWith('gpu') || device.driver == 'x'")
    other = DeviceFacts(driver="x")
    assert compiled.evaluate(GPU).cost != compiled.evaluate(other).cost
    assert compiled.evaluate(GPU) == compiled.evaluate(GPU)


def test_only_short_texts_are_remembered_by_a_constant_pattern() -> None:
    search = precompiled("matches", "a")
    assert search is not None
    short, long = "AB".lower(), "a" * 10_000
    before = [sys.getrefcount(text) for text in (short, long)]
    assert search(short, "a")
    assert search(long, "a")
    after = [sys.getrefcount(text) for text in (short, long)]
    assert [new - old for old, new in zip(before, after, strict=True)] == [1, 0]


@pytest.mark.parametrize("text", ["1e1001", "-1e2000000000", "1" * 1_300, "0e-5000"])
def test_a_quantity_too_long_to_be_computed_with_is_an_error(text: str) -> None:
    verdict = program(f"quantity('{text}').compareTo(quantity('1')) >= 0").evaluate(GPU)
    assert verdict.error == "quantity needs more than 1000 digits"
    facts = DeviceFacts(driver="d", capacity={"m": DeviceCapacity(value=text)})
    assert program("true").evaluate(facts).error == "capacity m: quantity needs more than 1000 digits"


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(20000).all(x, sign(quantity('1e99999').add(x)) == 1)",
        "lists.range(20000).all(x, sign(quantity('1e999').add(x)) == 1)",
        "cel.bind(y, quantity('1e999').add(1), lists.range(20000).all(x, quantity('1e999').isLessThan(y)))",
    ],
)
def test_long_quantities_do_not_hold_an_evaluation_up(text: str) -> None:
    compiled = program(text)
    began = time.process_time()
    compiled.evaluate(GPU)
    assert time.process_time() - began < 5.0  # 124 s with quantities of any length


_ROUNDS = "!lists.range(90000).exists(x, {})"
_DIGITS = "9" * 9_000


@pytest.mark.parametrize(
    "body",
    [
        f"cel.bind(s, '{_DIGITS[:4000]}', int(s) == 1)",
        f"cel.bind(s, '{_DIGITS}', double(s) == 1.0)",
        f"cel.bind(s, '{_DIGITS[:4000]}s', duration(s) == duration('1s'))",
        f"cel.bind(z, '{_DIGITS[:4000]}:0', timestamp('2000-01-01T00:00:00Z').getHours(z) == 7)",
        "timestamp('2000-01-01T00:00:00Z').getHours('No/Where' + string(x)) == 7",
    ],
    ids=["int", "double", "duration", "offset", "zone"],
)
def test_long_texts_that_are_read_again_and_again_do_not_hold_an_evaluation_up(body: str) -> None:
    compiled = program(_ROUNDS.format(body))
    began = time.process_time()
    verdict = compiled.evaluate(GPU)
    assert time.process_time() - began < 5.0  # up to half a minute where nothing is counted
    assert verdict.error == "operation cancelled: the values that the expression makes are too large"
