"""Access paths: a variable or value with selections and indices behind it.

Owns what a path costs and yields (cel-go interpreter/attributes.go): one for the path, one for each step;
optional steps; the tests of has(); the quick ways into a device.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from extender.selectors.cost import equality, tenth
from extender.selectors.equality import equal
from extender.selectors.errors import CelError
from extender.selectors.frame import Eval, Frame, exceeded
from extender.selectors.values import (
    MISSING,
    NONE,
    MapValue,
    Optional,
    UInt,
    go_type,
    no_overload,
    show,
    size_of,
    type_name,
)

_QUALIFIERS: Final = frozenset({str, int, UInt, bool, float})


def _no_key(key: Any) -> CelError:
    return CelError(f"no such key: {show(key)}")


def _index(values: list[Any], key: Any) -> Any:
    """The element, or MISSING; raise CelError for what can't be an index."""
    kind = type(key)
    if kind is float:
        if key != key // 1 or abs(key) >= 2**63:
            raise CelError(f"unsupported index value {show(key)} in list")
        key = int(key)
    elif kind is not int and kind is not UInt:
        raise CelError(f"unsupported index type '{type_name(key)}' in list")
    return values[key] if 0 <= key < len(values) else MISSING


def find(target: Any, key: Any) -> Any:
    """What `target[key]` is, or MISSING."""
    kind = type(target)
    if kind is MapValue:
        return target.find(key)
    if kind is list:
        return _index(target, key)
    return MISSING


def get(target: Any, key: Any) -> Any:
    """What `target[key]` is; raise CelError when it is missing."""
    found = find(target, key)
    if found is MISSING:
        if type(target) is list:
            raise CelError(f"index out of bounds: {show(key)}")
        raise _no_key(key)
    return found


class Step:
    """One selection or index: a constant key, or one that is evaluated."""

    __slots__ = ("key", "make", "optional", "test")

    def __init__(
        self, key: Any, make: Eval | None = None, *, optional: bool = False, test: bool = False
    ) -> None:
        self.key = key
        self.make = make
        self.optional = optional
        self.test = test

    def _key(self, frame: Frame) -> Any:
        if self.make is None:
            return self.key
        key = self.make(frame)
        if type(key) not in _QUALIFIERS:
            raise CelError(f"invalid qualifier type: {go_type(key)}")
        return key

    def walk(self, frame: Frame, target: Any) -> Any:
        """The value behind the step; costs 1 whether it is there or not."""
        try:
            key = self._key(frame)
            value = find(target, key) is not MISSING if self.test else get(target, key)
        except CelError:
            _one(frame)
            raise
        frame.left = left = frame.left - 1
        if left < 0:
            exceeded(frame, units=True)
        return value

    def look(self, frame: Frame, target: Any) -> Any:
        """The value behind the step, or MISSING, which costs nothing."""
        found = find(target, self._key(frame))
        if found is not MISSING:
            frame.left = left = frame.left - 1
            if left < 0:
                exceeded(frame, units=True)
        return found


class Path:
    """A root and the steps behind it. `root` yields the first value; `device`: it is the device variable."""

    __slots__ = ("device", "root", "steps", "tested")

    def __init__(self, root: Eval, *, device: bool = False) -> None:
        self.root = root
        self.device = device
        self.steps: list[Step] = []
        self.tested = False

    def add(self, step: Step) -> None:
        """Append a step."""
        self.steps.append(step)

    def resolver(self) -> Eval:
        """What yields the value without the 1 that the path itself costs."""
        if not self.steps:
            return self.root
        quick = self._quick(extra=0)
        return quick if quick is not None else _slow(self.root, tuple(self.steps))

    def evaluator(self) -> Eval:
        """What yields the value and charges for all of it."""
        if self.tested:
            return _tested(self.resolver())
        quick = self._quick(extra=1)
        return quick if quick is not None else _charged(self.resolver())

    def constant_keys(self) -> tuple[str, ...] | None:
        """The keys of a path from the device, when all are constant texts and none is optional or a test."""
        if not self.device:
            return None
        keys: list[str] = []
        for step in self.steps:
            if step.make is not None or step.optional or step.test or type(step.key) is not str:
                return None
            keys.append(step.key)
        return tuple(keys)

    def _quick(self, extra: int) -> Eval | None:
        keys = self.constant_keys()
        if keys is None:
            return None
        if keys == ("driver",):
            return _driver(1 + extra)
        if len(keys) == 3 and keys[0] == "attributes":
            return _attribute(keys[1], keys[2], 3 + extra)
        if len(keys) == 3 and keys[0] == "capacity":
            return _capacity(keys[1], keys[2], 3 + extra)
        return None


class Choice:
    """A ternary as a root: steps behind it go to both branches. It costs nothing itself.

    `tested`: has() looks at the last step behind it, which is not so when only a branch is a has() itself.
    """

    __slots__ = ("condition", "no", "tested", "yes")

    def __init__(self, condition: Eval, yes: Path | Choice, no: Path | Choice) -> None:
        self.condition = condition
        self.yes = yes
        self.no = no
        self.tested = False

    def add(self, step: Step) -> None:
        """Append a step to both branches."""
        self.yes.add(step)
        self.no.add(step)

    def resolver(self) -> Eval:
        """What yields the chosen branch's value."""
        condition, yes, no = self.condition, self.yes.resolver(), self.no.resolver()

        def run(frame: Frame) -> Any:
            chosen = condition(frame)
            if chosen is True:
                return yes(frame)
            if chosen is False:
                return no(frame)
            raise no_overload()

        return run

    def evaluator(self) -> Eval:
        """The same: a ternary has no cost of its own. Upstream takes the 1 of has() back even so."""
        return _refunded(_tested(self.resolver())) if self.tested else self.resolver()


def _tested(resolve: Eval) -> Eval:
    def run(frame: Frame) -> Any:
        value = resolve(frame)
        return value.present if type(value) is Optional else value

    return run


def _refunded(resolve: Eval) -> Eval:
    def run(frame: Frame) -> Any:
        try:
            return resolve(frame)
        finally:
            frame.left += 1

    return run


def _charged(resolve: Eval) -> Eval:
    def run(frame: Frame) -> Any:
        try:
            value = resolve(frame)
        except CelError:
            _one(frame)
            raise
        frame.left = left = frame.left - 1
        if left < 0:
            exceeded(frame, units=True)
        return value

    return run


def _one(frame: Frame) -> None:
    frame.left -= 1
    if frame.left < 0:
        exceeded(frame, units=True)


def _slow(root: Eval, steps: tuple[Step, ...]) -> Eval:
    def run(frame: Frame) -> Any:
        value = root(frame)
        optional = type(value) is Optional
        if optional:
            if not value.present:
                return value
            value = value.value
        for step in steps:
            optional = optional or step.optional
            if optional:
                value = step.look(frame, value)
                if value is MISSING:
                    return NONE
            else:
                value = step.walk(frame, value)
        return Optional(value) if optional else value

    return run


def _driver(cost: int) -> Eval:
    def run(frame: Frame) -> Any:
        frame.left = left = frame.left - cost
        if left < 0:
            exceeded(frame, units=True)
        return frame.device.driver

    return run


def _attribute(domain: str, id_: str, cost: int) -> Eval:
    missing = f"no such key: {id_}"

    def run(frame: Frame) -> Any:
        frame.left = left = frame.left - cost
        if left < 0:
            exceeded(frame, units=True)
        try:
            return frame.device.attributes[domain][id_]
        except KeyError:
            raise CelError(missing) from None

    return run


def device_text_equals(keys: tuple[str, ...], text: str, *, negated: bool) -> Eval | None:
    """`device.driver == text` or `device.attributes[domain].id == text` at once; None for other paths."""
    length = len(text)
    prices = tuple(tenth(min(n, length)) for n in range(length + 1))
    if keys == ("driver",):

        def driver_equals(frame: Frame) -> bool:
            value = frame.device.driver
            size = len(value)
            frame.left = left = frame.left - 2 - prices[min(length, size)]
            if left < 0:
                _split(frame, prices[min(len(value), length)])
            return (value == text) is not negated

        return driver_equals
    if len(keys) != 3 or keys[0] != "attributes":
        return None
    domain, id_ = keys[1:]
    missing = f"no such key: {id_}"
    unit = tenth(min(1, length))

    def attribute_equals(frame: Frame) -> bool:
        try:
            value = frame.device.attributes[domain][id_]
        except KeyError:
            frame.left -= 4 + unit
            if frame.left < 0:
                _split(frame, unit)
            raise CelError(missing) from None
        if type(value) is str:
            size = len(value)
            frame.left = left = frame.left - 4 - prices[min(length, size)]
            if left < 0:
                _split(frame, prices[min(size, length)])
            return (value == text) is not negated
        price = tenth(min(size_of(value), length)) if negated else equality(value, text)
        frame.left -= 4 + price
        if frame.left < 0:
            _split(frame, price)
        try:
            return equal(value, text) is not negated
        except CelError:
            if negated:
                return True
            raise

    return attribute_equals


def _split(frame: Frame, price: int) -> NoReturn:
    """A path and a comparison were charged together: tell which of them passed the limit."""
    exceeded(frame, units=frame.left + price < 0)


def _capacity(domain: str, id_: str, cost: int) -> Eval:
    missing = f"no such key: {id_}"

    def run(frame: Frame) -> Any:
        frame.left = left = frame.left - cost
        if left < 0:
            exceeded(frame, units=True)
        try:
            return frame.device.capacity[domain][id_]
        except KeyError:
            raise CelError(missing) from None

    return run
