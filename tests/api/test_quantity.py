"""Quantities behave as k8s.io/apimachinery's resource.Quantity does."""

from __future__ import annotations

import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.api.quantity import Quantity, QuantityError

INT64_MAX = 2**63 - 1
SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
}


@st.composite
def quantities(draw: st.DrawFn) -> tuple[str, Fraction]:
    """A text without loss of precision and its value."""
    suffix = draw(st.sampled_from(sorted(SUFFIXES)))
    whole = draw(st.integers(0, 8_000_000))
    places = draw(st.integers(0, 3)) if suffix not in {"n", "u", "m"} else 0
    fraction = "".join(draw(st.lists(st.sampled_from("0123456789"), min_size=places, max_size=places)))
    sign = draw(st.sampled_from(["", "-", "+"]))
    number = f"{whole}.{fraction}" if places else str(whole)
    value = Fraction(number) * SUFFIXES[suffix]
    return f"{sign}{number}{suffix}", -value if sign == "-" else value


def exact(quantity: Quantity) -> Fraction:
    return Fraction(quantity._unscaled) * Fraction(10) ** quantity._exponent


@given(quantities())
def test_a_parsed_text_has_the_value_it_says(case: tuple[str, Fraction]) -> None:
    text, value = case
    assert exact(Quantity.parse(text)) == value


@given(quantities())
def test_the_text_form_parses_back_to_the_same_value(case: tuple[str, Fraction]) -> None:
    quantity = Quantity.parse(case[0])
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert hash(again) == hash(quantity)


@given(quantities(), quantities())
def test_comparison_sum_and_difference_follow_the_values(
    left: tuple[str, Fraction], right: tuple[str, Fraction]
) -> None:
    a, b = Quantity.parse(left[0]), Quantity.parse(right[0])
    assert a.cmp(b) == (left[1] > right[1]) - (left[1] < right[1])
    assert (a == b) == (left[1] == right[1])
    assert (a < b) == (left[1] < right[1])
    assert exact(a.add(b)) == left[1] + right[1]
    assert exact(a.sub(b)) == left[1] - right[1]
    if abs(left[1] + right[1]) < 1 << 63:  # upstream caps binary texts there as it reads them, but no sums
        assert str(Quantity.parse(str(a.add(b)))) == str(a.add(b))


def test_a_binary_sum_past_int64_is_written_as_no_text_of_it_is_read() -> None:
    total = Quantity.parse("388608Ti").add(Quantity.parse("8000000Ti"))
    assert str(total) == "8Ei"
    assert str(Quantity.parse("8Ei")) == str((1 << 63) - 1)


@given(st.text(max_size=12))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert quantity.cmp(Quantity.parse(text)) == 0
    assert str(quantity)


@given(st.integers(-(10**18) + 1, INT64_MAX))
def test_an_integer_keeps_its_value(number: int) -> None:
    quantity = Quantity.of(number)
    assert quantity.value() == number
    assert quantity == Quantity(number)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("1.5", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1000", "1k"),
        ("1.500", "1.500"),
        ("+5", "+5"),
        ("0100", "0100"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("0.1m", "100u"),
        ("1e3", "1e3"),
        ("12e6", "12e6"),
        ("1E", "1E"),
        (".5", "500m"),
        (".", "0"),
        ("5.", "5."),
        ("100Ei", "9223372036854775807"),
        ("0.0000000001", "1n"),
        ("-0.0000000001", "-1n"),
        ("0.5Ki", "512"),
        ("1e21", "1e21"),
        ("100000000000000000000000", "100"),
    ],
)
def test_the_canonical_text_is_upstreams(text: str, canonical: str) -> None:
    assert str(Quantity.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "quantities must match the regular expression"),
        ("abc", "quantities must match the regular expression"),
        (" 1", "quantities must match the regular expression"),
        ("1\n", "quantities must match the regular expression"),
        ("1.2.3", "quantities must match the regular expression"),
        ("\u0661", "quantities must match the regular expression"),
        ("1kk", "unable to parse quantity's suffix"),
        ("1e", "unable to parse quantity's suffix"),
        ("5-3", "unable to parse quantity's suffix"),
        ("Ei", "unable to parse numeric part of quantity"),
    ],
)
def test_what_is_no_quantity_is_refused_with_upstreams_message(text: str, message: str) -> None:
    with pytest.raises(QuantityError, match=message):
        Quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", (5, True)),
        ("5k", (5000, True)),
        ("1Gi", (2**30, True)),
        ("512Mi", (2**29, True)),
        ("0.5Gi", (0, False)),
        ("99Ti", (99 * 2**40, True)),
        ("100Ti", (0, False)),
        ("100Ei", (0, False)),
        ("99999999999Ki", (99999999999 * 2**10, True)),
        ("1Pi", (0, False)),
        ("1500m", (0, False)),
        ("1000m", (0, False)),
        ("9223372036854775807", (0, False)),
        ("10E", (0, False)),
    ],
)
def test_only_what_is_held_as_int64_reads_as_int64(text: str, expected: tuple[int, bool]) -> None:
    assert Quantity.parse(text).as_int64() == expected


@pytest.mark.parametrize(
    ("text", "units", "millis"),
    [
        ("1500m", 2, 1500),
        ("-1500m", -2, -1500),
        ("1n", 1, 1),
        ("0.5Gi", 2**29, 2**29 * 1000),
        ("3k", 3000, 3000000),
        ("9223372036854775806.5", INT64_MAX, -1500),
        ("12345678901234567890.5", 12345678901234567891 - 2**64, 4807115922877859396),
        ("1e4294967295", 1, 100),
    ],
)
def test_values_round_up(text: str, units: int, millis: int) -> None:
    assert Quantity.parse(text).value() == units
    assert Quantity.parse(text).milli_value() == millis


def test_a_negative_decimal_rounds_towards_zero_plus_one_as_upstream_does() -> None:
    assert Quantity.parse("-1.5Ki").sub(Quantity.parse("0.5")).value() == -1535


@pytest.mark.parametrize(
    ("value", "text"),
    [(" 5 ", "5"), (7, "7"), (Decimal("1.5"), "1500m"), (Decimal("1E+3"), "1E+3"), (Decimal(12), "12")],
)
def test_json_values_are_read(value: str | int | Decimal, text: str) -> None:
    assert str(Quantity.of(value)) == text


def test_a_truth_value_is_no_quantity() -> None:
    with pytest.raises(QuantityError):
        Quantity.of(value=True)


def test_wide_exponents_compare_without_being_written_out() -> None:
    assert Quantity.parse("1e2000000000").cmp(Quantity.parse("1")) == 1
    assert Quantity.parse("-1e2000000000").cmp(Quantity.parse("1e-9")) == -1
    with pytest.raises(QuantityError, match="digits"):
        Quantity.parse("1e2000000000").add(Quantity.parse("1"))


def test_numbers_longer_than_the_interpreters_digit_limit_are_read() -> None:
    quantity = Quantity.parse("1" * 9000)
    assert str(quantity) == "1" * 9000
    assert quantity.cmp(Quantity.parse("1" * 8999)) == 1


def test_a_number_that_would_take_seconds_is_refused_at_once() -> None:
    for text in ("1" * 1_000_000, "-" + "9" * 20_001 + "Ki", f"0.{'1' * 900_000}e2000000"):
        with pytest.raises(QuantityError, match="more than 20000 digits"):
            Quantity.parse(text)


@given(
    places=st.integers(0, 400).flatmap(lambda n: st.text("0123456789", min_size=n, max_size=n)),
    zeros=st.integers(0, 300),
    suffix=st.sampled_from(["", "n", "m", "E", "Ki", "Ei", "e-200", "e-9", "e7", "e120"]),
    sign=st.sampled_from(["", "-"]),
)
def test_places_far_behind_nano_only_round_away(places: str, zeros: int, suffix: str, sign: str) -> None:
    text = f"{sign}0.{'0' * zeros}{places}"
    factor = Fraction(Quantity.parse(f"1{suffix}").nano(), 10**9) if not suffix.startswith("e-200") else None
    exact = Fraction(text) * (Fraction(1, 10**200) if factor is None else factor)
    nano = abs(exact) * 10**9
    rounded = -(-nano.numerator // nano.denominator)
    assert Quantity.parse(text + suffix).nano() == (-rounded if sign else rounded)


@pytest.mark.parametrize("suffix", ["", "Ei", "e20"])
def test_a_megabyte_of_places_is_read_like_a_few(suffix: str) -> None:
    for digits, few in (
        ("3" * 1_000_000, "3" * 200),
        ("0" * 1_000_000, "0"),
        ("0" * 1_000_000 + "1", "0" * 200 + "1"),
    ):
        assert Quantity.parse(f"7.{digits}{suffix}") == Quantity.parse(f"7.{few}{suffix}")


def test_a_quantity_does_not_change_when_added_to() -> None:
    quantity = Quantity.parse("1Gi")
    quantity.add(Quantity.parse("1Gi"))
    assert str(quantity) == "1Gi"


def test_a_zero_takes_the_format_of_what_is_added() -> None:
    assert str(Quantity().add(Quantity.parse("2Gi"))) == "2Gi"
    assert Quantity.parse("0Gi").sub(Quantity.parse("5")).format == "DecimalSI"


def test_subtracting_the_least_integer_wraps_around_only_where_the_sum_is_an_integer() -> None:
    least = Quantity(-(1 << 63))
    assert Quantity.parse("1").sub(least).value() == 1 - (1 << 63)  # as upstream has it
    assert str(Quantity.parse("-1").sub(least)) == str((1 << 63) - 1)


def test_a_sum_past_every_float_is_infinite() -> None:
    huge = Quantity.parse("1e999")
    assert Quantity.parse("2").add(huge).as_approximate_float() == float("inf")
    assert Quantity.parse("2").sub(huge).as_approximate_float() == float("-inf")


@pytest.mark.parametrize("zeros", [255, 256, 257, 600, 99_000])
def test_a_long_row_of_zeros_is_written_and_hashed_as_its_power(zeros: int) -> None:
    began = time.process_time()
    quantity = Quantity(3 * 10**zeros, format="DecimalExponent")
    assert str(quantity) == f"{3 * 10 ** (zeros % 3)}e{zeros - zeros % 3}"
    assert hash(quantity) == hash(Quantity.parse(f"3e{zeros}"))
    assert time.process_time() - began < 2.0  # one zero at a time took a minute of the longest


def test_a_binary_result_of_1024_has_a_suffix_and_a_smaller_one_has_none() -> None:
    assert str(Quantity.parse("8Ki").sub(Quantity.parse("7Ki"))) == "1Ki"
    assert str(Quantity.parse("8Ki").sub(Quantity.parse("7169"))) == "1023"
