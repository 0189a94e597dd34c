"""Texts that are quantities, nearly quantities, or quantities at the edges of int64 and nano."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.oracle.strategies.draw import chance, pick, weighted

if TYPE_CHECKING:
    import random

_SUFFIXES = ("", "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_ODD_SUFFIXES = ("K", "mi", "i", "e", "E+", "e1.5", " ", "kk", "KiB", "e3k", "EE", "ee3", "Mi3", "x")
_WIDE = re.compile(r"[eE][+-]?[0-9]{4}")
"""Exponents that upstream writes out in full, gigabytes of digits for the widest."""
_EDGES = (
    "0", "-0", "+0", "00", "0.0", "1", "-1", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", "18446744073709551616", "9223372036854775807m",
    "0.000000001", "0.0000000001", "1n", "0.1n", "999999999999999999", "1000000000000000000", "8Ei", "7.9Ei",
    "0.5Gi", "0.5Ki", "0.1Ki", "1e18", "1e19", "1e-9", "1e-10", "1E3", "1E", "12E6", "1.5e3", ".5", "5.", ".",
    "", "-", "+", "1023", "1024", "1025", "1Ki", "1000Ki", "1024Ki", "1048576", "1e21", "1e100", "-1e-100",
    "123456789012345678901234567890", "0.123456789123456789", "2147483648e2", "1_000", "1,5", "0x10", "NaN",
    "inf", "1e999", "1e-999", "1e9223372036854775808",
)  # fmt: skip  # many to a line


def small_quantity(rng: random.Random) -> str:
    """A quantity from a small set whose sums often meet exactly."""
    return pick(rng, ("1", "2", "1", "3", "2000m", "500m", "1500m", "4", "1Ki", "0", "1Gi", "1024Mi"))


def large_quantity(rng: random.Random) -> str:
    """A quantity that mostly holds one to three of the small ones."""
    return pick(rng, ("4", "5", "8", "4500m", "6", "2Ki", "2Gi", "3", "1"))


def rough_quantity(rng: random.Random) -> str:
    """A quantity at an edge: held as a decimal, too precise for milli, near or past int64."""
    return pick(
        rng,
        (
            "0.5Gi", "0.5Ki", "1.5", "1u", "1n", "100m", "1500u", "9223372036854775807",
            "9223372036854775806", "9223372036854775808", "18446744073709551616", "9223372036854775807m",
            "9223372036854775806m",
            "-1", "9223372036854775807k", "0.1Ki", "4e3", "1e18",
        ),
    )  # fmt: skip  # many to a line


def quantity_text(rng: random.Random) -> str:
    """A text that is mostly a quantity."""
    kind = weighted(rng, [(60, "made"), (25, "edge"), (10, "odd"), (5, "noise")])
    if kind == "edge":
        return pick(rng, _EDGES)
    if kind == "noise":
        text = "".join(pick(rng, "0123456789.+-eEkKmMiGnu ") for _ in range(rng.randrange(1, 10)))
        return "1e3" if _WIDE.search(text) else text
    text = pick(rng, ("", "", "", "-", "+")) + _number(rng)
    if kind == "odd":
        return text + pick(rng, _ODD_SUFFIXES)
    if chance(rng, 15):
        return text + pick(rng, ("e", "E")) + pick(rng, ("", "-", "+")) + str(rng.randrange(25))
    return text + pick(rng, _SUFFIXES)


def quantity_pair(rng: random.Random) -> tuple[str, str]:
    """Two texts; often the same number in another spelling."""
    first = quantity_text(rng)
    if chance(rng, 15):
        return first, first + pick(rng, ("", "0", ".0", "m", "000m", "k", "Ki", "e0", "e3"))
    return first, quantity_text(rng)


def _number(rng: random.Random) -> str:
    digits = pick(rng, (1, 1, 2, 3, 4, 6, 10, 15, 16, 17, 18, 19, 20, 25))
    whole = str(rng.randrange(10**digits))
    if chance(rng, 8):
        whole = "0" * rng.randrange(1, 4) + whole
    if chance(rng, 20):
        whole = str(rng.randrange(1, 2_000)) + "0" * rng.randrange(13)
    if not chance(rng, 35):
        return whole
    places = pick(rng, (1, 1, 2, 3, 6, 9, 10, 12, 18))
    fraction = str(rng.randrange(10**places)).zfill(places)
    return (
        pick(rng, (whole, whole, whole, "0", "")) + "." + pick(rng, (fraction, fraction, fraction, "0", ""))
    )
