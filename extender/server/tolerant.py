"""The tolerant decoder: any key casing, nulls anywhere, as Go has it; faults name the field."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from extender.model.errors import WireError

T = TypeVar("T")


class TolerantDecoder(Generic[T]):
    """Decodes into `shape`, matching keys without regard to case and reading null as absent."""

    def __init__(self, shape: type[T]) -> None:
        self._shape = shape
        self._info = msgspec.inspect.type_info(shape)  # a millisecond and more for a pod

    def decode(self, body: bytes) -> T:
        """Raises WireError with the path of the field that does not fit."""
        try:
            document = msgspec.json.decode(body)
        except RecursionError as error:
            raise WireError("the body is nested too deeply") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise WireError(_not_json(body, error)) from error
        if not isinstance(document, dict):
            raise WireError(f"the body is a JSON {_kind(document)}, an object was expected")
        try:
            return msgspec.convert(_spelled(document, self._info), self._shape)
        except (msgspec.ValidationError, RecursionError) as error:
            raise WireError(str(error)) from error


def _not_json(body: bytes, error: Exception) -> str:
    if not body.strip():
        return "the body is empty"
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as encoding:
        return f"the body is not UTF-8: {encoding.reason} at byte {encoding.start}"
    return f"the body is not one JSON document: {error}"


def _spelled(value: Any, info: msgspec.inspect.Type) -> Any:
    """The value with keys spelled as `info` wants them and nulls left out."""
    if isinstance(info, msgspec.inspect.UnionType):
        fitting = [t for t in info.types if not isinstance(t, msgspec.inspect.NoneType)]
        return _spelled(value, fitting[0]) if len(fitting) == 1 else value
    if isinstance(info, msgspec.inspect.StructType) and isinstance(value, dict):
        exact = {field.encode_name: field.type for field in info.fields}
        folded = {name.casefold(): name for name in exact}
        spelled = {}
        for key, inner in value.items():
            name = key if key in exact else folded.get(key.casefold())
            if name is not None and inner is not None:
                spelled[name] = _spelled(inner, exact[name])
        return spelled
    if isinstance(info, msgspec.inspect.ListType) and isinstance(value, list):
        keyless = isinstance(info.item_type, msgspec.inspect.StrType)  # 5,000 names
        return value if keyless else [_spelled(inner, info.item_type) for inner in value]
    if isinstance(info, msgspec.inspect.DictType) and isinstance(value, dict):
        return {key: _spelled(inner, info.value_type) for key, inner in value.items() if inner is not None}
    if isinstance(info, msgspec.inspect.RawType):
        return msgspec.Raw(msgspec.json.encode(value))
    return value


def _kind(value: object) -> str:
    names = {list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return names.get(type(value), "null")
