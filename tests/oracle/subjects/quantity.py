"""Quantities: parsing, canonical text, numbers, comparison and arithmetic beside apimachinery's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from extender.api.quantity import Quantity, QuantityError
from tests.oracle.client import Oracle, QuantityAnswer, QuantityFacts
from tests.oracle.strategies.quantities import quantity_pair
from tests.oracle.subjects.subject import Difference

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

Pair = tuple[str, str]


class QuantitySubject:
    """`extender.api.quantity` beside k8s.io/apimachinery resource.Quantity."""

    name = "quantity"

    def generate(self, rng: random.Random) -> Pair:
        return quantity_pair(rng)

    def theirs(self, oracle: Oracle, inputs: Sequence[Pair]) -> list[QuantityAnswer]:
        return [_without_decimals(answer) for answer in oracle.quantities(inputs)]

    def ours(self, made: Pair) -> QuantityAnswer:
        first, a = _facts(made[0])
        second, b = _facts(made[1])
        if first is None:
            return QuantityAnswer(a, b)
        negated = str(first.neg())
        if second is None:
            return QuantityAnswer(a, b, neg=negated)
        return QuantityAnswer(
            a,
            b,
            compare=first.cmp(second),
            add=str(first.add(second)),
            sub=str(first.sub(second)),
            neg=negated,
        )

    def compare(self, ours: QuantityAnswer, theirs: QuantityAnswer) -> Difference | None:
        mine, upstream = msgspec.to_builtins(ours), msgspec.to_builtins(theirs)
        for side in ("a", "b"):
            for fact, value in upstream[side].items():
                if mine[side][fact] != value:
                    return Difference(
                        f"{side}.{fact}", repr(mine[side][fact]), repr(value), soft=fact == "error"
                    )
        for fact in ("compare", "add", "sub", "neg"):
            if mine[fact] != upstream[fact]:
                return Difference(fact, repr(mine[fact]), repr(upstream[fact]))
        return None

    def repeated(self, oracle: Oracle, made: Pair) -> list[QuantityAnswer]:
        return self.theirs(oracle, [made])

    def known(self, made: Pair, theirs: QuantityAnswer) -> None:
        del made, theirs

    def outcome(self, theirs: QuantityAnswer) -> str:
        return f"{sum((theirs.a.ok, theirs.b.ok))} of 2 parse"

    def smaller(self, made: Pair) -> Iterator[Pair]:
        for at in (1, 0):
            text = made[at]
            for less in ("", "0", "1", *(text[:i] + text[i + 1 :] for i in range(len(text)))):
                if len(less) < len(text) or (len(less) == len(text) and less < text):
                    yield (made[0], less) if at else (less, made[1])

    def as_case(self, made: Pair) -> dict[str, Any]:
        return {"a": made[0], "b": made[1]}


def _facts(text: str) -> tuple[Quantity | None, QuantityFacts]:
    try:
        quantity = Quantity.parse(text)
    except QuantityError as error:
        return None, QuantityFacts(ok=False, error=str(error))
    whole, exact = quantity.as_int64()
    return quantity, QuantityFacts(
        ok=True,
        canonical=str(quantity),
        format=quantity.format,
        value=quantity.value(),
        milli=quantity.milli_value(),
        as_int64=whole if exact else None,
        sign=quantity.sign(),
    )


def _without_decimals(answer: QuantityAnswer) -> QuantityAnswer:
    """Our side has no decimal text: the canonical one and the numbers are compared instead."""
    return msgspec.structs.replace(
        answer,
        a=msgspec.structs.replace(answer.a, decimal=""),
        b=msgspec.structs.replace(answer.b, decimal=""),
        add_decimal="",
        sub_decimal="",
    )
