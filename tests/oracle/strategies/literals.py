"""Literals and device accesses: the leaves of generated expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.oracle.strategies.draw import chance, pick
from tests.oracle.strategies.quantities import quantity_text, small_quantity

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

DRIVER: Final = "gpu.example.com"
DOMAINS: Final = (DRIVER, "other.example.com")

SCALARS: Final = {"string": ("s", "t"), "int": ("n", "m"), "bool": ("f",), "semver": ("v",)}
LISTS: Final = {"string": ("ss",), "int": ("nn",), "bool": ("ff",), "semver": ("vv",)}
NAMES: Final = ("s", "t", "n", "m", "f", "v", "ss", "nn", "ff", "vv", "missing")
CAPACITIES: Final = ("mem", "cnt", "missing")

_INTS: Final = (
    "0", "1", "2", "3", "-1", "7", "10", "48", "100", "0x1F", "-0x10", "9223372036854775807",
    "-9223372036854775808", "4611686018427387904", "1000000",
)  # fmt: skip  # many to a line
_UINTS: Final = ("0u", "1u", "2u", "3U", "10u", "0xFFu", "18446744073709551615u", "9223372036854775808u")
_DOUBLES: Final = (
    "0.0", "1.0", "-1.5", "2.5", ".5", "1e3", "1e-3", "3.0", "9223372036854775807.0", "1e308", "-0.0", "0.1",
    "9007199254740993.0", "1.7976931348623157e308", "123456789.125", 'double("NaN")', 'double("-Infinity")',
    'double("Infinity")',
)  # fmt: skip  # many to a line
_STRINGS: Final = (
    '""', '"a"', '"b"', "'ab'", '"A100"', '"abc"', "'a b'", '"1"', '"3.5"', '"true"', '"1h"', '"1.2.3"',
    '"10.0.0.1"', '"2Gi"', r'"\n\t"', r'"\u00e9"', r'"\x41\101"', r"r'\d'", '"é"', '"日本"', '"😀"',
    "'''it's'''",
    '"""q"q"""', '"a,b,,c"', '"aXbXc"', '" trim "', '"-5"', '"gpu"', r'"\U0001F600"', r'"\\"', r"'\''",
    r'"\a\b\f\r\v\?\`"', '"x" + "y"', "R'raw'", '"ABC-def"', '"%s"', '"a.b"',
)  # fmt: skip  # many to a line
_BYTES: Final = ("b''", 'b"a"', r'b"\xff"', 'b"é"', r"br'\d'", r'b"\000\377"', 'b"abc"')
_PATTERNS: Final = (
    '"a"', '"^a.*"', '"[a-c]+$"', r'r"\d+"', '"A100|H100"', '"(?i)abc"', '"(a)(b)?"', '"[[:alpha:]]+"', '""',
    '"."', r'r"^\w{1,3}$"', '"a{2,}"', '"x*"', r'r"\pL"',
)  # fmt: skip  # many to a line
_TIMESTAMPS: Final = (
    'timestamp("2024-01-02T03:04:05Z")', 'timestamp("1970-01-01T00:00:00Z")', "timestamp(0)",
    'timestamp("2024-02-29T23:59:59.999999999+05:30")', 'timestamp("0001-01-01T00:00:00Z")',
    'timestamp("9999-12-31T23:59:59Z")', "timestamp(1700000000)",
)  # fmt: skip  # many to a line
_DURATIONS: Final = (
    'duration("0s")', 'duration("1s")', 'duration("1h30m")', 'duration("-1.5h")', 'duration("1500ms")',
    'duration("1us")', 'duration("1ns")', 'duration("2540400h")', 'duration("315576000000s")',
)  # fmt: skip  # many to a line
_TYPES: Final = (
    "int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type",
    "google.protobuf.Timestamp", "google.protobuf.Duration", "optional_type", "type(1)", 'type("a")',
    'type(quantity("1"))',
)  # fmt: skip  # many to a line
_VERSIONS: Final = (
    '"1.2.3"', '"1.0.0"', '"2.0.0-rc.1"', '"1.2.3+build"', '"v1.2.3"', '"1.2"', '"01.2.3"', '"0.0.0"', '"1"',
    '"99999999999999999999.0.0"', '"1.2.3-alpha.beta"', '""',
)  # fmt: skip  # many to a line
_IPS: Final = (
    '"10.0.0.1"', '"127.0.0.1"', '"::1"', '"fe80::1"', '"::ffff:1.2.3.4"', '"224.0.0.1"', '"0.0.0.0"',
    '"2001:DB8::1"', '"10.0.0.01"', '"fe80::1%eth0"', '"300.0.0.1"', '"8.8.8.8"', '"169.254.1.1"',
    '"ff02::1"',
)  # fmt: skip  # many to a line
_CIDRS: Final = (
    '"10.0.0.0/8"', '"10.0.0.1/24"', '"::/0"', '"fe80::/10"', '"10.0.0.0/33"', '"10.0.0.0"', '"0.0.0.0/0"',
    '"10.0.0.0/08"', '"::ffff:10.0.0.0/104"', '"2001:db8::/32"',
)  # fmt: skip  # many to a line
_URLS: Final = (
    '"https://example.com:8080/a%20b?q=1&q=2#f"', '"http://[::1]:80/"', '"/path/only"', '"nope"',
    '"mailto:a@b"',
    '"https://user:pw@host/"', '"http://a b/"', '"https://example.com?q"', '""', '"http://h/%zz"',
    '"HTTP://EXAMPLE.com/é?x=%41&q=a+b"',
)  # fmt: skip  # many to a line
_FORMATS: Final = (
    "dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix",
    "dns1123SubdomainPrefix", "dns1035LabelPrefix", "labelValue", "uri", "uuid", "byte", "date", "datetime",
)  # fmt: skip  # many to a line
_FORMAT_STRINGS: Final = (
    '"%s"', '"%d"', '"%f"', '"%.2f"', '"%e"', '"%.3e"', '"%x"', '"%X"', '"%o"', '"%b"', '"%%"', '"%s-%s"',
    '"%d%%"',
    '"no clause"', '"%z"', '"%"', '"%.f"', '"%.1000f"',
)  # fmt: skip  # many to a line
_TIME_PARTS: Final = (
    "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours",
    "getMinutes", "getSeconds", "getMilliseconds",
)  # fmt: skip  # many to a line
_ZONES: Final = ('"UTC"', '"+02:00"', '"-08:30"', '"America/New_York"', '"Nowhere/City"', '""', '"02:00"')

_PLAIN: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("true", "false"),
    "int": _INTS,
    "uint": _UINTS,
    "double": _DOUBLES,
    "string": _STRINGS,
    "bytes": _BYTES,
    "null": ("null",),
    "timestamp": _TIMESTAMPS,
    "duration": _DURATIONS,
    "type": _TYPES,
    "pattern": _PATTERNS,
    "version_string": _VERSIONS,
    "ip_string": _IPS,
    "cidr_string": _CIDRS,
    "url_string": _URLS,
    "formatname": _FORMATS,
    "format_string": _FORMAT_STRINGS,
    "timepart": _TIME_PARTS,
    "timezone": _ZONES,
    "name": NAMES,
    "cname": CAPACITIES,
}


def _quoted_quantity(rng: random.Random) -> str:
    text = small_quantity(rng) if chance(rng, 60) else quantity_text(rng)
    return f'"{text}"'


def _domain_map(rng: random.Random, field: str) -> str:
    domain = DRIVER if chance(rng, 85) else pick(rng, (*DOMAINS, "absent.example.com"))
    forms = (f'device.{field}["{domain}"]', f'device.{field}["{domain}"]', f"device.{field}[device.driver]")
    return f"device.{field}.`{domain}`" if chance(rng, 4) else pick(rng, forms)


_MADE: Final[dict[str, Callable[[random.Random], str]]] = {
    "quantity_string": _quoted_quantity,
    "attributes": lambda rng: _domain_map(rng, "attributes"),
    "capacity": lambda rng: _domain_map(rng, "capacity"),
    "domain": lambda rng: f'"{pick(rng, (*DOMAINS, "absent.example.com"))}"',
    "namelit": lambda rng: f'"{pick(rng, NAMES)}"',
    "format_literal": lambda rng: f'"{pick(rng, (*_FORMATS, "nope"))}"',
}


def is_lexical(kind: str) -> bool:
    """Whether the hole takes a text of its own and never a whole expression."""
    return kind in _MADE or (kind in _PLAIN and kind not in EXPRESSION_TYPES)


EXPRESSION_TYPES: Final = (
    "bool", "int", "uint", "double", "string", "bytes", "null", "timestamp", "duration", "type",
)  # fmt: skip  # many to a line


def lexical(rng: random.Random, kind: str) -> str:
    """A text for a lexical hole or a literal of a plain type."""
    made = _MADE.get(kind)
    return made(rng) if made is not None else pick(rng, _PLAIN[kind])


def attribute_access(rng: random.Random, name: str) -> str:
    """An expression that reads one attribute, in one of the spellings people use."""
    base = _domain_map(rng, "attributes")
    form = rng.randrange(12)
    if form == 0:
        return f'{base}["{name}"]'
    if form == 1:
        return f"{base}.?{name}.value()"
    return f"{base}.{name}"


def device(rng: random.Random) -> dict[str, object]:
    """A device in the shape of the selector conformance cases; any attribute may be missing."""
    attributes: dict[str, object] = {}
    for name in NAMES:
        if name == "missing" or not chance(rng, 80):
            continue
        attributes[f"{DRIVER}/{name}" if chance(rng, 10) else name] = _attribute(rng, name)
    for name in ("s", "n"):
        if chance(rng, 30):
            attributes[f"other.example.com/{name}"] = _attribute(rng, name)
    if chance(rng, 2):
        attributes["v"] = {"version": "1.0"}
    capacity = {
        (f"{DRIVER}/{name}" if chance(rng, 10) else name): small_quantity(rng)
        for name in CAPACITIES[:2]
        if chance(rng, 80)
    }
    made: dict[str, object] = {"driver": DRIVER, "attributes": attributes, "capacity": capacity}
    if chance(rng, 30):
        made["allowMultipleAllocations"] = True
    return made


_VALUES: Final[dict[str, tuple[str, tuple[object, ...]]]] = {
    "n": ("int", (0, 1, 3, -1, 9223372036854775807)),
    "m": ("int", (0, 1, 3, 2)),
    "f": ("bool", (True, False)),
    "v": ("version", ("1.2.3", "1.0.0", "2.0.0-rc.1", "1.2.3+build")),
    "s": ("string", ("a", "b", "A100", "", "é", "1.2.3", "2Gi", "gpu")),
    "t": ("string", ("a", "b", "A100", "abc", "10.0.0.1", "5")),
    "nn": ("ints", (0, 1, 2, 3)),
    "ff": ("bools", (True, False)),
    "vv": ("versions", ("1.2.3", "1.0.0")),
    "ss": ("strings", ("a", "b", "A100")),
}


def _attribute(rng: random.Random, name: str) -> dict[str, object]:
    if chance(rng, 5):
        name = pick(rng, NAMES[:-1])
    kind, values = _VALUES[name]
    if len(name) == 1:
        return {kind: pick(rng, values)}
    return {kind: [pick(rng, values) for _ in range(pick(rng, (2, 1, 3, 0)))]}
