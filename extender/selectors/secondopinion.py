"""The second opinion: cel-python on the same selector and device.

Owns the adapter: values, the functions that Kubernetes adds, and what counts as an answer. It never decides
anything: it has no type checker, no optional values and other rules for mixed types, so it is only compared
with. Only its interpreting runner is used (its compiling one keeps state in module globals).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import celpy
from celpy import celtypes
from celpy.evaluation import CELEvalError

from extender.api.quantity import Quantity
from extender.selectors.device import Prepared
from extender.selectors.errors import CelError
from extender.selectors.library import quantity as quantity_library
from extender.selectors.library import semver as semver_library
from extender.selectors.semver import Semver
from extender.selectors.values import no_overload

_MAX_LENGTH: Final = 10_240
"""Length up to which a text is given to it: its parser is slow and nests without a limit of its own."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What cel-python says: a value, or an error (which includes whatever it can't parse or do)."""

    value: bool | None
    error: str | None


class _Domains(celtypes.MapType):
    """The map of domains: a missing domain is an empty map."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if key in self else celtypes.MapType({})

    def get(self, key: Any, default: Any = None) -> Any:
        """The domain; there always is one."""
        _ = default
        return self[key]


class SecondOpinion:
    """One cel-python environment; not to be shared between threads."""

    def __init__(self) -> None:
        before = sys.getrecursionlimit()
        try:
            self._environment = celpy.Environment(runner_class=celpy.InterpretedRunner)
        finally:
            sys.setrecursionlimit(before)  # it raises the limit of the whole process

    def verdict(self, text: str, device: Prepared) -> Opinion:
        """Evaluate; never raises."""
        if len(text) > _MAX_LENGTH:
            return Opinion(None, f"longer than {_MAX_LENGTH} characters")
        try:
            tree = self._environment.compile(text)
            program = self._environment.program(tree, functions=dict(_FUNCTIONS))
            result = program.evaluate({"device": _device(device)})
        except Exception as error:  # noqa: BLE001 - it raises errors of many kinds, RecursionError too
            return Opinion(None, f"{type(error).__name__}: {error}")
        if isinstance(result, (bool, celtypes.BoolType)):
            return Opinion(bool(result), None)
        return Opinion(None, f"result is {type(result).__name__}")


def _device(device: Prepared) -> Any:
    return celtypes.MapType(
        {
            celtypes.StringType("driver"): celtypes.StringType(device.driver),
            celtypes.StringType("allowMultipleAllocations"): celtypes.BoolType(device.multi),
            celtypes.StringType("attributes"): _domains(device.attributes),
            celtypes.StringType("capacity"): _domains(device.capacity),
        }
    )


def _domains(domains: dict[str, dict[str, Any]]) -> Any:
    return _Domains(
        {
            celtypes.StringType(domain): celtypes.MapType(
                {celtypes.StringType(id_): _value(value) for id_, value in ids.items()}
            )
            for domain, ids in domains.items()
        }
    )


def _value(value: Any) -> Any:
    if isinstance(value, bool):
        return celtypes.BoolType(value)
    if isinstance(value, int):
        return celtypes.IntType(value)
    if isinstance(value, str):
        return celtypes.StringType(value)
    if isinstance(value, list):
        return celtypes.ListType([_value(item) for item in value])
    return value  # quantities and versions pass through


def _wrapped(run: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        plain = [_plain(arg) for arg in args]
        if any(isinstance(arg, Exception) for arg in plain):
            return next(arg for arg in plain if isinstance(arg, Exception))
        try:
            return _value(run(*plain))
        except (CelError, AttributeError, TypeError, ValueError) as error:
            return CELEvalError(str(error))

    return call


def _plain(arg: Any) -> Any:
    if isinstance(arg, celtypes.BoolType):
        return bool(arg)
    if isinstance(arg, celtypes.IntType):
        return int(arg)
    if isinstance(arg, celtypes.StringType):
        return str(arg)
    return arg


def _compare(left: Any, right: Any) -> int:
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return left.cmp(right)
    if isinstance(left, Semver) and isinstance(right, Semver):
        return left.compare(right)
    raise no_overload()


def _integer(value: Any) -> int:
    number, fits = value.as_int64()
    if not fits:
        raise CelError("cannot convert value to integer")
    return int(number)


_FUNCTIONS: Final = {
    "quantity": _wrapped(quantity_library.parse),
    "semver": _wrapped(semver_library.parse),
    "isGreaterThan": _wrapped(lambda a, b: _compare(a, b) > 0),
    "isLessThan": _wrapped(lambda a, b: _compare(a, b) < 0),
    "compareTo": _wrapped(_compare),
    "asInteger": _wrapped(_integer),
    "isInteger": _wrapped(lambda a: a.as_int64()[1]),
    "sign": _wrapped(lambda a: a.sign()),
    "major": _wrapped(lambda a: a.major),
    "minor": _wrapped(lambda a: a.minor),
    "patch": _wrapped(lambda a: a.patch),
    "lowerAscii": _wrapped(lambda a: a.translate({c: c + 32 for c in range(65, 91)})),
    "upperAscii": _wrapped(lambda a: a.translate({c: c - 32 for c in range(97, 123)})),
}
"""Kubernetes' functions that selectors use most; its names are one function each, whatever the overload."""
