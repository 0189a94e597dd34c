"""Tokens of an expression (cel-go parser/gen/CELLexer).

Owns recognition of tokens and the values of literals; knows no grammar.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from extender.selectors.errors import Rejected, Source


class Token(NamedTuple):
    """A token: its kind, its text, where it starts."""

    kind: str
    text: str
    offset: int


_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7][0-7])"
_SKIPPED: Final = re.compile(r"(?:[\t \r\n\f]+|//[^\n]*)+")
_IDENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPED_IDENT: Final = re.compile(r"`[A-Za-z0-9_./ \-]+`")
_NUMBER: Final = re.compile(
    r"(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])|(?P<int>0x[0-9a-fA-F]+|[0-9]+)"
)
_STRINGS: Final = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
_RAW_STRINGS: Final = tuple(
    re.compile(pattern, re.DOTALL) for pattern in (r'""".*?"""', r"'''.*?'''", r'"[^"\n\r]*"', r"'[^'\n\r]*'")
)
_BROKEN_STRING: Final = re.compile(rf"""(?P<quote>["'])(?:{_ESCAPE}|[^\\\n\r])*(?:\\?.)?""", re.DOTALL)
_STRING_PREFIX: Final = re.compile(r"([bB]?)([rR]?)(?=[\"'])")
_OPERATORS: Final = re.compile(r"==|!=|<=|>=|&&|\|\||[\[\]{}().,\-!?:+*/%<>]")
_KEYWORDS: Final = {"in": "in", "true": "bool", "false": "bool", "null": "null"}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MAX_CODE_POINTS: Final = 100_000


def tokenize(source: Source) -> list[Token]:
    """Return the tokens, an `end` token last; raise Rejected at the first text that is none."""
    text = source.text
    if len(text) > _MAX_CODE_POINTS:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {_MAX_CODE_POINTS}"
        raise Rejected([source.issue(0, message)])
    surrogate = _SURROGATE.search(text)
    if surrogate is not None:
        # No UTF-8 text holds one, so upstream can't be asked.
        at = surrogate.start()
        raise Rejected([source.issue(at, f"Syntax error: token recognition error at: U+{ord(text[at]):04X}")])
    tokens: list[Token] = []
    position, length = 0, len(text)
    while True:
        skipped = _SKIPPED.match(text, position)
        if skipped is not None:
            position = skipped.end()
        if position >= length:
            tokens.append(Token("end", "<EOF>", length))
            return tokens
        token = _token(source, text, position)
        tokens.append(token)
        position += len(token.text)


def _token(source: Source, text: str, position: int) -> Token:
    char = text[position]
    prefix = _STRING_PREFIX.match(text, position)
    if prefix is not None:
        return _string(source, text, position, prefix)
    found = _IDENT.match(text, position)
    if found is not None:
        return Token(_KEYWORDS.get(found[0], "ident"), found[0], position)
    if char.isascii() and (char.isdigit() or char == "."):
        number = _NUMBER.match(text, position)
        if number is not None:
            return Token(number.lastgroup or "int", number[0], position)
    found = _ESCAPED_IDENT.match(text, position) if char == "`" else _OPERATORS.match(text, position)
    if found is not None:
        return Token("escaped" if char == "`" else found[0], found[0], position)
    end = position + 1
    if char in "&|=" and end < len(text):
        end += 1  # the lexer has looked one further when it gives up
    raise Rejected(
        [source.issue(position, f"Syntax error: token recognition error at: '{text[position:end]}'")]
    )


def _string(source: Source, text: str, position: int, prefix: re.Match[str]) -> Token:
    start = prefix.end()
    for pattern in _RAW_STRINGS if prefix[2] else _STRINGS:
        found = pattern.match(text, start)
        if found is not None:
            return Token("bytes" if prefix[1] else "string", text[position : found.end()], position)
    broken = _BROKEN_STRING.match(text, start)
    end = broken.end() if broken is not None else len(text)
    shown = text[position:end].replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    raise Rejected([source.issue(position, f"Syntax error: token recognition error at: '{shown}'")])


_SIMPLE_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    '"': '"',
    "'": "'",
    "\\": "\\",
    "?": "?",
    "`": "`",
}
_UNESCAPE: Final = re.compile(r"\\(?:[xX](..)|u(....)|U(........)|([0-3][0-7][0-7])|(.))", re.DOTALL)


def _body(literal: str) -> tuple[str, bool]:
    """The text between the quotes, and whether it is raw."""
    raw = literal[:1] in {"r", "R"}
    if raw:
        literal = literal[1:]
    literal = literal.replace("\r\n", "\n").replace("\r", "\n")
    width = 3 if len(literal) >= 6 and literal[:3] in {'"""', "'''"} else 1
    return literal[width:-width], raw


def string_value(literal: str) -> str:
    """The value of a string literal; raise ValueError with upstream's message."""
    body, raw = _body(literal)
    if raw or "\\" not in body:
        return body

    def replace(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if match[5]:
            return _SIMPLE_ESCAPES[match[5]]
        point = int(code, 16) if code else int(match[4], 8)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise ValueError("invalid unicode code point")
        return chr(point)

    return _UNESCAPE.sub(replace, body)


def bytes_value(literal: str) -> bytes:
    """The value of a bytes literal (with its b); raise ValueError with upstream's message."""
    body, raw = _body(literal[1:])
    if raw or "\\" not in body:
        return body.encode()
    pieces: list[bytes] = []
    position = 0
    for match in _UNESCAPE.finditer(body):
        pieces.append(body[position : match.start()].encode())
        position = match.end()
        if match[2] or match[3]:
            raise ValueError("unable to unescape string")
        if match[1]:
            pieces.append(bytes([int(match[1], 16)]))
        elif match[4]:
            pieces.append(bytes([int(match[4], 8)]))
        else:
            pieces.append(_SIMPLE_ESCAPES[match[5]].encode())
    pieces.append(body[position:].encode())
    return b"".join(pieces)
