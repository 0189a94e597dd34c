"""Kubernetes resource quantities ("40Gi", "500m", "12e6"), exact.

Owns the value, its text forms and its arithmetic, as k8s.io/apimachinery's resource.Quantity has them, with
that type's quirks (a quantity is held either as a scaled int64 or as a decimal; `as_int64` knows only the
first). It never touches floats except to report one, and never knows what a quantity measures.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import total_ordering
from typing import Final, Literal

Format = Literal["", "DecimalSI", "BinarySI", "DecimalExponent"]

_INT64_MAX: Final = (1 << 63) - 1
_INT64_MIN: Final = -(1 << 63)
_FAST_DIGITS: Final = 18
"""Most decimal digits that fit an int64 for sure; a longer number is held as a decimal."""
_NANO: Final = -9
_MAX_DIGITS: Final = 100_000
"""Widest power of ten that is ever written out. Go computes on until memory ends; here it is an error."""
_MOST_READ: Final = 20_000
"""Longest number that is read: milliseconds, where a megabyte of digits would take seconds."""
_PLACES: Final = 100
"""Places behind nano that are read. No multiple of a nano lies between two numbers that agree so far, nor
after both are multiplied by a power of 2 (2**60 needs 60 of them)."""
_CHUNK: Final = 4_000
"""Digits converted at a time: CPython refuses to convert longer texts (sys.int_max_str_digits)."""
_HUGE: Final = 400
_LONG: Final = 2_048
"""Bits from which on factors are divided out many at a time: one by one a long number takes seconds."""
_MANY: Final = 256
_WRAPPING: Final = frozenset({1, 2, 3, 6, 9})
"""Powers of ten that upstream multiplies by at once; their product wraps around where others give 0."""

_SHAPE: Final = re.compile(r"([+-]?)(0*)([0-9]*)(\.[0-9]*)?([eEinumkKMGTP]*[-+]?[0-9]*)")
_SIGNED_DIGITS: Final = re.compile(r"[+-]?[0-9]+")
_SUFFIXES: Final[dict[str, tuple[int, int, Format]]] = {
    "": (10, 0, "DecimalSI"),
    "n": (10, -9, "DecimalSI"),
    "u": (10, -6, "DecimalSI"),
    "m": (10, -3, "DecimalSI"),
    "k": (10, 3, "DecimalSI"),
    "M": (10, 6, "DecimalSI"),
    "G": (10, 9, "DecimalSI"),
    "T": (10, 12, "DecimalSI"),
    "P": (10, 15, "DecimalSI"),
    "E": (10, 18, "DecimalSI"),
    "Ki": (2, 10, "BinarySI"),
    "Mi": (2, 20, "BinarySI"),
    "Gi": (2, 30, "BinarySI"),
    "Ti": (2, 40, "BinarySI"),
    "Pi": (2, 50, "BinarySI"),
    "Ei": (2, 60, "BinarySI"),
}
_DECIMAL_NAMES: Final = {exponent: name for name, (base, exponent, _) in _SUFFIXES.items() if base == 10}
_BINARY_NAMES: Final = {exponent: name for name, (base, exponent, _) in _SUFFIXES.items() if base == 2}
_BINARY_DIGITS: Final = {10: 3, 20: 6, 30: 9, 40: 12, 50: 15, 60: 18}

_WRONG_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"
_TOO_LONG: Final = f"a quantity of more than {_MOST_READ} digits is not read"


class QuantityError(ValueError):
    """The text is no quantity, or the value is too wide to be computed with.

    The message is upstream's, but for numbers so long that upstream would compute for seconds.
    """


@total_ordering
class Quantity:
    """An immutable quantity; equal and hashed by value (1 == 1000m), whatever its format.

    Its value is `unscaled * 10**exponent`. Source of every rule: apimachinery pkg/api/resource at v0.37.
    """

    __slots__ = ("_decimal", "_exponent", "_format", "_kept", "_text", "_unscaled")

    def __init__(
        self,
        unscaled: int = 0,
        exponent: int = 0,
        *,
        format: Format = "DecimalSI",  # noqa: A002 - the field's own name upstream
        decimal: bool = False,
        text: str = "",
    ) -> None:
        self._unscaled = unscaled
        self._exponent = exponent
        self._format: Format = format
        self._decimal = decimal or not _INT64_MIN <= unscaled <= _INT64_MAX
        self._text = self._kept = text

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a quantity; raise QuantityError with upstream's message for anything else."""
        if text == "0":
            return cls(0, text="0")
        match = _SHAPE.fullmatch(text) if text else None
        if match is None:
            raise QuantityError(_WRONG_FORMAT)
        sign, zeros, whole, fraction, suffix = match.groups()
        if not whole and fraction is None and not suffix:
            return cls(0)  # only a sign and zeros
        number = whole or "0"
        places = "" if fraction is None else fraction[1:]
        base, exponent, kind = _interpret(suffix)
        places = _told_apart(places, _PLACES - _NANO + (exponent if base == 10 else 0))
        if len(number) + len(places) > _MOST_READ:
            raise QuantityError(_TOO_LONG)
        if base == 2:
            precision = -1 if places else 15 - len(number) - _BINARY_DIGITS[exponent] - 1
            scale, factor = 0, 1 << exponent
        else:
            precision = _FAST_DIGITS - len(number) - len(places)
            scale, factor = exponent - len(places), 1
        if precision >= 0 and scale >= _NANO:
            digits = number + places
            mantissa = int(digits)
            value = mantissa * factor
            if value <= _INT64_MAX:  # the factor can overflow int64; then the decimal form is used
                if base == 2:
                    keep = mantissa & 7 != 0
                else:
                    keep = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
                return cls(-value if sign == "-" else value, scale, format=kind, text=text if keep else "")
        if not (zeros or whole or places):
            raise QuantityError(_WRONG_NUMBER)
        return cls._parse_decimal(
            number + places, -len(places), negative=sign == "-", suffix=(base, exponent, kind)
        )

    @classmethod
    def _parse_decimal(
        cls, digits: str, scale: int, *, negative: bool, suffix: tuple[int, int, Format]
    ) -> Quantity:
        """The slow way: any number of digits, rounded away from zero to nano, binary capped at int64."""
        base, exponent, kind = suffix
        unscaled = _int_of(digits)
        if base == 10:
            scale += exponent
        else:
            unscaled <<= exponent
        if unscaled and scale < _NANO:
            unscaled, scale = _divide_away(unscaled, _NANO - scale), _NANO
        elif unscaled and scale <= _HUGE:
            unscaled, scale = unscaled * _power(scale - _NANO), _NANO
        if kind == "BinarySI" and unscaled:
            if _compare(unscaled, scale, _INT64_MAX, 0) > 0:
                unscaled, scale = _INT64_MAX, 0
            if _compare(unscaled, scale, 1, 0) < 0:
                kind = "DecimalSI"  # upstream avoids a rounding here
        return cls(-unscaled if negative else unscaled, scale, format=kind, decimal=True)

    @classmethod
    def of(cls, value: str | int | Decimal) -> Quantity:
        """Read what JSON carries: a text (white space around it is dropped, as upstream does) or a number."""
        if isinstance(value, bool):
            raise QuantityError(_WRONG_FORMAT)
        if isinstance(value, int):
            return cls.parse(str(value))
        if isinstance(value, Decimal):
            return cls.parse(format(value, "f") if value.as_tuple().exponent == 0 else str(value))
        return cls.parse(value.strip("\t\n\v\f\r \x85\xa0"))

    @property
    def format(self) -> Format:
        """The suffix family that the text form uses."""
        return self._format

    # -- reading ---------------------------------------------------------------------------------------

    def as_int64(self) -> tuple[int, bool]:
        """Return (value, True) when the value is held as an integer in int64, else (0, False).

        A quantity held as a decimal ("0.5Gi", 20 digits) answers False even when its value is whole.
        """
        if self._decimal or self._exponent < 0:
            return 0, False
        if self._exponent == 0:
            return self._unscaled, True
        value = self._scaled_up(self._exponent)
        return (0, False) if value is None else (value, True)

    def value(self) -> int:
        """Return the value in units, rounded up as `scaled_value(0)` does."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        """Return the value in thousandths, rounded up as `scaled_value(-3)` does."""
        return self.scaled_value(-3)

    def scaled_value(self, scale: int) -> int:  # noqa: PLR0911 - one return for each way of upstream
        """Return value / 10**scale as int64, rounded.

        Scaled integers round away from zero; an overflow wraps around or gives 0, by the power. Decimals
        round up (upstream adds 1 to the truncated quotient, so -1.5 becomes 0) and an overflow wraps around.
        """
        difference = self._exponent - scale
        if not self._decimal:
            if difference < 0:
                return _divide_away(self._unscaled, -difference)
            if difference in _WRAPPING and self._unscaled != _INT64_MIN:
                return _wrap(self._unscaled * 10**difference)
            return self._scaled_up(difference) or 0
        if self._unscaled and difference > 0:
            if difference > 18:
                return _wrap(_wrap(self._unscaled) * _INT64_MIN)
            return _wrap(_wrap(self._unscaled) * _power(difference))
        if difference == 0 or not self._unscaled:
            return _wrap(self._unscaled)
        if self._unscaled < _INT64_MAX and -difference < 19:
            low = _wrap(self._unscaled)
            quotient, rest = divmod(abs(low), _power(-difference))
            quotient = -quotient if low < 0 else quotient
            return quotient + 1 if rest else quotient
        quotient, rest = divmod(self._unscaled, _power(-difference))
        return _wrap(quotient) + (1 if rest else 0)

    def as_approximate_float(self) -> float:
        """Return float64(unscaled) * float64(10**exponent): infinite past the range, not always nearest."""
        unscaled, exponent = self._unscaled, self._exponent
        if self._decimal and exponent > _HUGE:  # too wide to have been put at nano scale; Go's base overflows
            return math.inf * self.sign() if unscaled else 0.0
        try:
            base = float(unscaled)
        except OverflowError:
            base = math.inf * self.sign()
        return base if exponent == 0 else base * _float_power(exponent)

    def is_wider_than(self, digits: int) -> bool:
        """Tell whether sums and comparisons with it can need more than about so many digits."""
        return (
            self._exponent < -digits
            or self._unscaled.bit_length() > 4 * digits
            or (self._unscaled != 0 and self._exponent > digits)
        )

    def sign(self) -> int:
        """Return -1, 0 or 1."""
        return (self._unscaled > 0) - (self._unscaled < 0)

    def cmp(self, other: Quantity) -> int:
        """Return -1, 0 or 1 as this value is below, equal to or above the other."""
        if self._exponent == other._exponent:
            return (self._unscaled > other._unscaled) - (self._unscaled < other._unscaled)
        return _compare(self._unscaled, self._exponent, other._unscaled, other._exponent)

    def nano(self) -> int:
        """Return the exact value in units of 1e-9; raise QuantityError past the widest power of ten."""
        return self._unscaled and self._unscaled * _power(self._exponent - _NANO)

    def is_identical(self, other: Quantity) -> bool:
        """Tell whether both are held alike, parsed text included, as Go's == on the struct does.

        A decimal never is: Go compares the pointers of two copies.
        """
        return (
            self is other
            or (self._unscaled, self._exponent, self._format, self._kept)
            == (other._unscaled, other._exponent, other._format, other._kept)
        ) and not (self._decimal or other._decimal)

    # -- arithmetic ------------------------------------------------------------------------------------

    def add(self, other: Quantity) -> Quantity:
        """Return the sum; a zero takes the other's format. Raise QuantityError for one of too many digits."""
        kind = self._format
        if not self._decimal and not other._decimal:
            if self._unscaled == 0:
                return Quantity(other._unscaled, other._exponent, format=other._format)
            return self._plus(other._unscaled, other._exponent, kind)
        if self._unscaled == 0:
            kind = other._format
        return self._plus_decimal(other._unscaled, other._exponent, kind)

    def sub(self, other: Quantity) -> Quantity:
        """Return the difference; a zero takes the other's format. Raise QuantityError as `add` does."""
        kind = other._format if self._unscaled == 0 else self._format
        if self._decimal or other._decimal:
            return self._plus_decimal(-other._unscaled, other._exponent, kind)
        if other._unscaled == _INT64_MIN:  # its negation wraps around, where the sum then fits int64
            if self._unscaled == 0:
                return Quantity(_INT64_MIN, other._exponent, format=kind)
            sum_ = self._plus_integer(_INT64_MIN, other._exponent, kind)
            return self._plus_decimal(-_INT64_MIN, other._exponent, kind) if sum_ is None else sum_
        if self._unscaled == 0:
            return Quantity(-other._unscaled, other._exponent, format=kind)
        return self._plus(-other._unscaled, other._exponent, kind)

    def neg(self) -> Quantity:
        """Return the value with the other sign."""
        return Quantity(-self._unscaled, self._exponent, format=self._format, decimal=self._decimal)

    def _plus(self, unscaled: int, exponent: int, kind: Format) -> Quantity:
        if unscaled == 0:
            return Quantity(self._unscaled, self._exponent, format=kind)
        sum_ = self._plus_integer(unscaled, exponent, kind)
        return self._plus_decimal(unscaled, exponent, kind) if sum_ is None else sum_

    def _plus_integer(self, unscaled: int, exponent: int, kind: Format) -> Quantity | None:
        """The sum as a scaled int64, or None where a part or the sum is no int64."""
        low = min(self._exponent, exponent)
        if max(self._exponent, exponent) - low <= _FAST_DIGITS:
            left = self._unscaled * 10 ** (self._exponent - low)
            right = unscaled * 10 ** (exponent - low)
            total = left + right
            inside = all(_INT64_MIN <= part <= _INT64_MAX for part in (left, right, total))
            if inside:
                return Quantity(total, low, format=kind)
        return None

    def _plus_decimal(self, unscaled: int, exponent: int, kind: Format) -> Quantity:
        low = min(self._exponent, exponent)
        left = self._unscaled and self._unscaled * _power(self._exponent - low)
        right = unscaled and unscaled * _power(exponent - low)
        return Quantity(left + right, low, format=kind, decimal=True)

    def _scaled_up(self, power: int) -> int | None:
        """The value times 10**power, or None outside int64 (a held minimum never scales)."""
        if self._unscaled == 0 or power == 0:
            return self._unscaled
        if power > _FAST_DIGITS or self._unscaled == _INT64_MIN:
            return None
        value = self._unscaled * _power(power)
        return value if _INT64_MIN <= value <= _INT64_MAX else None

    # -- text ------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        text = self._text
        if not text:
            text = self._text = self._canonical()
        return text

    def _canonical(self) -> str:
        """The shortest text without fraction, the suffix as large as possible.

        A decimal suffix beyond E does not exist and upstream drops it silently; so do we.
        """
        unscaled, exponent, kind = self._unscaled, self._exponent, self._format
        if unscaled == 0:
            return "0"
        if kind == "BinarySI":
            if _compare(abs(unscaled), exponent, 1024, 0) == -1:
                kind = "DecimalSI"
            else:
                if exponent < 0:
                    unscaled, rest = divmod(unscaled, _power(-exponent))
                    kind = "DecimalSI" if rest else kind
                else:
                    unscaled *= _power(exponent)
                if kind == "BinarySI":
                    number, times = _strip(unscaled, 1024, held_as_int=not self._decimal)
                    return _text_of(number) + _BINARY_NAMES.get(times * 10, "")
                unscaled = self._unscaled
        number, times = _strip(unscaled, 10, held_as_int=False)
        exponent += times
        number *= 10 ** (exponent % 3)
        exponent -= exponent % 3
        if kind == "DecimalSI":
            return _text_of(number) + _DECIMAL_NAMES.get(exponent, "")
        return _text_of(number) + (f"e{exponent}" if exponent else "")

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.cmp(other) == 0

    def __lt__(self, other: Quantity) -> bool:
        return self.cmp(other) < 0

    def __hash__(self) -> int:
        number, times = _strip(self._unscaled, 10, held_as_int=False)
        return hash((number, self._exponent + times if number else 0))


def _told_apart(places: str, most: int) -> str:
    """The first `most` places, and a 1 for what follows unless that is zeros: both are rounded away alike."""
    most = max(most, 1)
    if len(places) <= most:
        return places
    kept = places[:most]
    return kept if places.count("0", len(kept)) == len(places) - len(kept) else kept + "1"


def _interpret(suffix: str) -> tuple[int, int, Format]:
    known = _SUFFIXES.get(suffix)
    if known is not None:
        return known
    if suffix[:1] in {"e", "E"} and _SIGNED_DIGITS.fullmatch(suffix, 1) and len(suffix) < _CHUNK:
        exponent = int(suffix[1:])
        if _INT64_MIN <= exponent <= _INT64_MAX:
            low = exponent & 0xFFFFFFFF  # upstream truncates the exponent to 32 bits
            return 10, low - (1 << 32) if low >> 31 else low, "DecimalExponent"
    raise QuantityError(_WRONG_SUFFIX)


def _wrap(value: int) -> int:
    """The value as two's complement int64."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _power(exponent: int) -> int:
    if exponent > _MAX_DIGITS:
        raise QuantityError(f"quantity needs more than {_MAX_DIGITS} digits")
    return int(10**exponent)


def _float_power(exponent: int) -> float:
    """Go's math.Pow10: a product (quotient) of two table entries, so not always the nearest float64."""
    if exponent > 308:
        return math.inf
    if exponent >= 0:
        return float(f"1e{exponent // 32 * 32}") * float(f"1e{exponent % 32}")
    if exponent < -323:
        return 0.0
    return float(f"1e-{-exponent // 32 * 32}") / float(f"1e{-exponent % 32}")


def _divide_away(value: int, power: int) -> int:
    """Value / 10**power, rounded away from zero."""
    if value == 0:
        return 0
    sign = -1 if value < 0 else 1
    if power > _MAX_DIGITS or power > abs(value).bit_length():
        return sign
    return -sign * (-abs(value) // _power(power))


def _compare(left: int, left_exponent: int, right: int, right_exponent: int) -> int:
    """Compare left * 10**left_exponent with right * 10**right_exponent without writing out wide powers."""
    left_sign, right_sign = (left > 0) - (left < 0), (right > 0) - (right < 0)
    if left_sign != right_sign or left_sign == 0:
        return (left_sign > right_sign) - (left_sign < right_sign)
    difference = left_exponent - right_exponent
    # 3 < log2(10) < 4: when the scaled side is longer whatever the rounding, the answer is known.
    if difference > 0:
        if 3 * difference + left.bit_length() > right.bit_length() + 1:
            return left_sign
        left *= 10**difference
    elif difference < 0:
        if -3 * difference + right.bit_length() > left.bit_length() + 1:
            return -left_sign
        right *= 10**-difference
    return (left > right) - (left < right)


def _strip(value: int, factor: int, *, held_as_int: bool) -> tuple[int, int]:
    """Divide out a factor; return the rest and how often. Upstream can't negate the lowest int64."""
    times = 0
    if held_as_int and value == _INT64_MIN:
        return value, 0
    for step in (_MANY, 1) if value.bit_length() > _LONG else (1,):
        power = factor**step
        while value and value % power == 0:
            value //= power
            times += step
    return value, times


def _int_of(digits: str) -> int:
    value = 0
    for start in range(0, len(digits), _CHUNK):
        piece = digits[start : start + _CHUNK]
        value = value * 10 ** len(piece) + int(piece)
    return value


def _text_of(value: int) -> str:
    sign, value = ("-", -value) if value < 0 else ("", value)
    pieces: list[str] = []
    while value >= 10**_CHUNK:
        value, low = divmod(value, 10**_CHUNK)
        pieces.append(str(low).zfill(_CHUNK))
    pieces.append(str(value))
    return sign + "".join(reversed(pieces))
