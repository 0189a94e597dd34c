"""Texts between quotes as Go's strconv.Quote writes them.

Owns that form alone; quotes in the language itself (`strings.quote`) are in `strings`.
"""

from __future__ import annotations

from typing import Final

_NAMED: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_NAMED_CODES: Final = str.maketrans(_NAMED)


def go_quote(text: str) -> str:
    """A text as Go's %q prints it."""
    named = text.translate(_NAMED_CODES)
    if not named.isprintable():
        named = "".join(char if char.isprintable() else _code(char) for char in named)
    return f'"{named}"'


def _code(char: str) -> str:
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
