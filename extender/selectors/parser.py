"""From tokens to a syntax tree (cel-go parser/gen/CEL.g4 and parser.go).

Owns the grammar, its depth limits and the places of syntax errors. Macros are expanded while parsing, as
upstream does; what they expand to is in `macros`.
"""

from __future__ import annotations

from typing import Final, NoReturn

from extender.selectors.ast import (
    Call,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
)
from extender.selectors.environment import Environment
from extender.selectors.errors import Rejected, Source
from extender.selectors.lexer import Token, bytes_value, string_value, tokenize
from extender.selectors.macros import MacroError, Macros
from extender.selectors.values import UInt

_DEPTH: Final = 250
_RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
_RELATIONS: Final = {
    "<": "_<_",
    "<=": "_<=_",
    ">": "_>_",
    ">=": "_>=_",
    "==": "_==_",
    "!=": "_!=_",
    "in": "@in",
}
_PRODUCTS: Final = {"*": "_*_", "/": "_/_", "%": "_%_"}
_SUMS: Final = {"+": "_+_", "-": "_-_"}
_STARTS: Final = (
    "'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES,"
    " IDENTIFIER"
)
_INT64_MAX: Final = (1 << 63) - 1
_UINT64_MAX: Final = (1 << 64) - 1


def parse(source: Source, environment: Environment) -> Node:
    """Return the tree with macros expanded; raise Rejected with the first issue."""
    return _Parser(source, environment).start()


class _Parser:
    def __init__(self, source: Source, environment: Environment) -> None:
        self._source = source
        self._tokens = tokenize(source)
        self._at = 0
        self._token = self._tokens[0]
        self._depths = {"expr": 0, "relation": 0, "calc": 0, "member": 0}
        self._height = (
            0  # of what the rule at work has read so far: operators and steps that lie in each other
        )
        self._escapes = environment.escaped_identifiers
        self._macros = Macros(environment)

    # -- plumbing --------------------------------------------------------------------------------------

    def _next(self) -> Token:
        token = self._token
        if token.kind != "end":
            self._at += 1
            self._token = self._tokens[self._at]
        return token

    def _error(self, offset: int, message: str) -> Rejected:
        return Rejected([self._source.issue(offset, message)])

    def _fail(self, offset: int, message: str) -> NoReturn:
        raise self._error(offset, message)

    def _unexpected(self, expecting: str) -> NoReturn:
        self._fail(
            self._token.offset,
            f"Syntax error: mismatched input '{self._token.text}' expecting {expecting}",
        )

    def _expect(self, kind: str, *, alone: bool = True) -> Token:
        """Take a token; `alone`: nothing else could stand here, so upstream says that it is missing."""
        if self._token.kind == kind:
            return self._next()
        if not alone:
            self._unexpected(f"{{'{kind}', ','}}")
        token = self._token
        if token.kind != "end" and self._tokens[self._at + 1].kind == kind:
            self._fail(token.offset, f"Syntax error: extraneous input '{token.text}' expecting '{kind}'")
        raise self._error(token.offset, f"Syntax error: missing '{kind}' at '{token.text}'")

    def _enter(self, rule: str, count: int = 1) -> None:
        self._depths[rule] += count
        if self._depths[rule] > _DEPTH:
            self._fail(self._token.offset, f"expression recursion limit exceeded: {_DEPTH}")

    def _wrap(self) -> None:
        """All that the rule at work has read becomes part of one more operator or step."""
        self._height += 1
        if self._height > _DEPTH:
            self._fail(self._token.offset, "max recursion depth exceeded")

    def _apart(self) -> int:
        """Begin to measure anew; what was measured so far is for `_together`."""
        before, self._height = self._height, 0
        return before

    def _together(self, before: int) -> None:
        self._height = max(before, self._height)

    # -- grammar ---------------------------------------------------------------------------------------

    def start(self) -> Node:
        node = self._expr()
        if self._token.kind != "end":
            last = self._tokens[self._at + 1].kind == "end"
            what = "extraneous" if last else "mismatched"
            self._fail(
                self._token.offset,
                f"Syntax error: {what} input '{self._token.text}' expecting <EOF>",
            )
        return node

    def _expr(self) -> Node:
        self._enter("expr")
        before = self._apart()
        node = self._logical("||", "_||_")
        if self._token.kind == "?":
            operator = self._next()
            yes = self._logical("||", "_||_")
            self._expect(":")
            no = self._expr()
            self._wrap()
            node = Call(operator.offset, "_?_:_", [node, yes, no])
        self._together(before)
        self._depths["expr"] -= 1
        return node

    def _logical(self, operator: str, function: str) -> Node:
        """`a || b || c`: a balanced tree, as upstream builds it."""
        terms = [self._logical("&&", "_&&_") if operator == "||" else self._relation()]
        places: list[int] = []
        while self._token.kind == operator:
            places.append(self._next().offset)
            terms.append(self._logical("&&", "_&&_") if operator == "||" else self._relation())
        return terms[0] if not places else _balanced(function, terms, places, 0, len(places) - 1)

    def _relation(self) -> Node:
        self._enter("relation")
        before = self._apart()
        node = self._sum()
        while self._token.kind in _RELATIONS:
            operator = self._next()
            self._enter("relation")
            right = self._sum()
            self._depths["relation"] -= 1
            self._wrap()
            node = Call(operator.offset, _RELATIONS[operator.kind], [node, right])
        self._together(before)
        self._depths["relation"] -= 1
        return node

    def _sum(self) -> Node:
        self._enter("calc")
        before = self._apart()
        node = self._product()
        while self._token.kind in _SUMS:
            operator = self._next()
            self._enter("calc")
            right = self._product()
            self._depths["calc"] -= 1
            self._wrap()
            node = Call(operator.offset, _SUMS[operator.kind], [node, right])
        self._together(before)
        self._depths["calc"] -= 1
        return node

    def _product(self) -> Node:
        before = self._apart()
        node = self._unary()
        while self._token.kind in _PRODUCTS:
            operator = self._next()
            self._enter("calc")
            right = self._unary()
            self._depths["calc"] -= 1
            self._wrap()
            node = Call(operator.offset, _PRODUCTS[operator.kind], [node, right])
        self._together(before)
        return node

    def _unary(self) -> Node:
        kind = self._token.kind
        if kind == "!" or (kind == "-" and not self._signed_literal()):
            first = self._next()
            count = 1
            while self._token.kind == kind:
                self._next()
                count += 1
            node = self._member()
            if count % 2 == 0:
                return node
            return Call(first.offset, "!_" if kind == "!" else "-_", [node])
        return self._member()

    def _signed_literal(self) -> bool:
        return self._tokens[self._at + 1].kind in {"int", "float"}

    def _member(self) -> Node:
        self._enter("member")
        before = self._apart()
        node = self._primary()
        while self._token.kind in {".", "["}:
            operator = self._next()
            optional = self._token.kind == "?"
            if optional:
                self._next()
            node = (
                self._index(node, operator, optional=optional)
                if operator.kind == "["
                else self._select(node, operator, optional=optional)
            )
            self._wrap()
        self._together(before)
        self._depths["member"] -= 1
        return node

    def _index(self, node: Node, operator: Token, *, optional: bool) -> Node:
        index = self._expr()
        self._expect("]")
        return Call(operator.offset, "_[?_]" if optional else "_[_]", [node, index])

    def _select(self, node: Node, operator: Token, *, optional: bool) -> Node:
        token = self._field(after="." if not optional else ".?")
        name = self._field_name(token)
        if optional:
            return Call(operator.offset, "_?._", [node, Literal(token.offset, name)])
        if token.kind == "ident" and self._token.kind == "(":
            place = self._next().offset
            return self._call(place, name, node, self._arguments())
        return Select(operator.offset, node, name)

    def _field(self, after: str) -> Token:
        token = self._token
        if token.kind in {"ident", "escaped"}:
            return self._next()
        if token.kind in {"bool", "null"}:
            self._fail(token.offset, f"Syntax error: mismatched input '{token.text}' expecting IDENTIFIER")
        text = "" if token.kind == "end" else token.text
        raise self._error(token.offset, f"Syntax error: no viable alternative at input '{after}{text}'")

    def _field_name(self, token: Token) -> str:
        if token.kind != "escaped":
            return token.text
        if not self._escapes:
            self._fail(token.offset, "unsupported syntax: '`'")
        return token.text[1:-1]

    def _arguments(self) -> list[Node]:
        args: list[Node] = []
        if self._token.kind != ")":
            if self._token.kind in {"end", ","}:
                self._unexpected("{" + _STARTS.replace("'.'", "')', '.'") + "}")
            args.append(self._expr())
            while self._token.kind == ",":
                self._next()
                args.append(self._expr())
        self._expect(")")
        return args

    def _call(self, offset: int, function: str, target: Node | None, args: list[Node]) -> Node:
        try:
            expanded = self._macros.expand(offset, function, target, args)
        except MacroError as error:
            self._fail(error.offset, str(error))
        return expanded if expanded is not None else Call(offset, function, args, target)

    def _primary(self) -> Node:
        token = self._token
        if token.kind in {"ident", "."}:
            return self._name()
        if token.kind == "(":
            self._next()
            node = self._expr()
            self._expect(")")
            return node
        if token.kind == "[":
            return self._list()
        if token.kind == "{":
            self._next()
            return self._map(token.offset)
        return self._literal()

    def _name(self) -> Node:
        dot = ""
        if self._token.kind == ".":
            self._next()
            dot = "."
        if self._token.kind != "ident":
            self._unexpected("IDENTIFIER")
        token = self._next()
        message = self._message_name(dot + token.text)
        if message is not None:
            return self._struct(message)
        if token.text in _RESERVED:
            self._fail(token.offset, f"reserved identifier: {token.text}")
        if self._token.kind == "(":
            place = self._next().offset
            return self._call(place, dot + token.text, None, self._arguments())
        return Ident(token.offset, dot + token.text)

    def _message_name(self, name: str) -> str | None:
        """Look ahead: `a.b.C{` starts a struct."""
        at = self._at
        while self._tokens[at].kind == "." and self._tokens[at + 1].kind == "ident":
            name += "." + self._tokens[at + 1].text
            at += 2
        if self._tokens[at].kind != "{":
            return None
        self._at = at
        self._token = self._tokens[at]
        return name

    def _struct(self, name: str) -> Node:
        offset = self._expect("{").offset
        fields: list[tuple[str, Node, bool, int]] = []
        while self._token.kind not in {"}", ","}:
            optional = self._token.kind == "?"
            if optional:
                self._next()
            field = self._field_name(self._field(after=""))
            place = self._expect(":").offset
            fields.append((field, self._expr(), optional, place))
            if self._token.kind != ",":
                break
            self._next()
        else:
            if self._token.kind == "," and not fields:
                self._next()
        self._expect("}")
        return StructNode(offset, name, fields)

    def _optional_expr(self) -> tuple[Node, bool]:
        optional = self._token.kind == "?"
        if optional:
            self._next()
        return self._expr(), optional

    def _list(self) -> Node:
        offset = self._next().offset
        elements: list[Node] = []
        optionals: list[int] = []
        while self._token.kind not in {"]", ","}:
            node, optional = self._optional_expr()
            if optional:
                optionals.append(len(elements))
            elements.append(node)
            if self._token.kind != ",":
                break
            self._next()
        else:
            if self._token.kind == "," and not elements:
                self._next()
        self._expect("]", alone=False)
        return ListNode(offset, elements, frozenset(optionals))

    def _map(self, offset: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while self._token.kind not in {"}", ","}:
            key, optional = self._optional_expr()
            self._expect(":")
            entries.append((key, self._expr(), optional))
            if self._token.kind != ",":
                break
            self._next()
        else:
            if self._token.kind == "," and not entries:
                self._next()
        self._expect("}", alone=False)
        return MapNode(offset, entries)

    def _literal(self) -> Node:
        token = self._token
        sign = ""
        if token.kind == "-" and self._signed_literal():
            self._next()
            sign = "-"
        kind, text = self._token.kind, self._token.text
        if kind not in {"int", "uint", "float", "string", "bytes", "bool", "null"}:
            self._unexpected("{" + _STARTS + "}")
        self._next()
        return Literal(token.offset, self._value(kind, sign + text, token.offset))

    def _value(self, kind: str, text: str, offset: int) -> object:
        if kind in {"string", "bytes"}:
            try:
                return string_value(text) if kind == "string" else bytes_value(text)
            except ValueError as error:
                self._fail(offset, str(error))
        if kind == "bool":
            return text == "true"
        if kind == "null":
            return None
        if kind == "float":
            value = float(text)
            if value in {float("inf"), float("-inf")}:
                self._fail(offset, "invalid double literal")
            return value
        return self._integer(kind, text, offset)

    def _integer(self, kind: str, text: str, offset: int) -> object:
        digits = text[:-1] if kind == "uint" else text
        hexadecimal = digits.lstrip("-").startswith("0x")
        if len(digits) > 200 and digits.lstrip("-0x"):
            digits = digits.lstrip("-0x")[:200].rjust(200, "1")  # out of range whatever the rest is
            hexadecimal = False
            if not digits.isdigit():
                digits = "1" * 200
        number = int(digits.replace("0x", ""), 16) if hexadecimal else int(digits)
        if kind == "uint":
            if number > _UINT64_MAX:
                self._fail(offset, "invalid uint literal")
            return UInt(number)
        if not -_INT64_MAX - 1 <= number <= _INT64_MAX:
            self._fail(offset, "invalid int literal")
        return number


def _balanced(function: str, terms: list[Node], places: list[int], low: int, high: int) -> Node:
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balanced(function, terms, places, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balanced(function, terms, places, middle + 1, high)
    return Call(places[middle], function, [left, right])
