"""A document held against a pydantic model: camelCase in the file, and every fault with its line.

Never: files, the environment, or what the fields mean.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, get_args, get_origin

import pydantic
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from extender.model.document import Document, Fault, Path, dotted

FIELD = "field"
"""A validator of several fields blames one by this key of its error's context: a path below the model."""


def spelled(model: type[BaseModel], document: Document) -> tuple[dict[str, Any], list[Fault]]:
    """The document's values by the model's field names, and a fault for every key that the model lacks.

    A section that is left empty counts as left out. Values are not judged; pydantic does that.
    """
    faults = list(document.repeated)
    if document.value is None:
        return {}, faults
    if not isinstance(document.value, dict):
        return {}, [*faults, Fault(document.line(()), "", "a mapping of sections is expected")]
    return _Spelling(document, faults).fields(model, document.value, ()), faults


def written_path(model: type[BaseModel], loc: Sequence[str | int]) -> Path:
    """The path as it is written in the file, of a path of field names."""
    path: list[str | int] = []
    current: type[BaseModel] | None = model
    for step in loc:
        field = current.model_fields.get(step) if current is not None and isinstance(step, str) else None
        if field is None:
            path.append(step)
        else:
            path.append(to_camel(str(step)))
            current = inner_model(field.annotation)
    return tuple(path)


def field_to_blame(error: ErrorDetails) -> tuple[str | int, ...]:
    """Where pydantic found a fault, as a path of field names."""
    below = error.get("ctx", {}).get(FIELD, ())
    return (*error["loc"], *below)


def fault_text(error: ErrorDetails) -> str:
    """What pydantic found wrong, with the value if it is short."""
    text = error["msg"].removeprefix("Value error, ")
    given = error["input"]
    if error["type"] == "missing" or not isinstance(given, str | int | float | bool | NoneType):
        return text
    return f"{text}, not {given!r}" if len(repr(given)) <= 60 else text


def faults_of(model: type[BaseModel], document: Document, error: pydantic.ValidationError) -> Iterator[Fault]:
    """What pydantic found wrong, with the lines of the document."""
    for detail in error.errors(include_url=False):
        path = written_path(model, field_to_blame(detail))
        yield Fault(document.line(path), dotted(path), fault_text(detail))


def inner_model(annotation: Any) -> type[BaseModel] | None:
    """The model in an annotation: itself, or that of an optional, a sequence or a mapping's values."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation if issubclass(annotation, BaseModel) else None
    found = (inner_model(argument) for argument in get_args(annotation))
    return next((model for model in found if model is not None), None)


def unknown(key: str, known: Sequence[str]) -> str:
    """The complaint about a key that nobody knows, with the one that may have been meant."""
    near = difflib.get_close_matches(key, known, n=1) or [
        name for name in known if name.lower() == key.replace("_", "").replace("-", "").lower()
    ]
    return f"unknown key; did you mean {near[0]!r}?" if near else "unknown key"


class _Spelling:
    """A walk through a document beside a model."""

    def __init__(self, document: Document, faults: list[Fault]) -> None:
        self._document = document
        self._faults = faults

    def fields(self, model: type[BaseModel], given: Mapping[str, Any], path: Path) -> dict[str, Any]:
        names = {to_camel(name): name for name in model.model_fields}
        values: dict[str, Any] = {}
        for key, value in given.items():
            here = (*path, key)
            name = names.get(key)
            if name is None:
                fault = Fault(self._document.line(here), dotted(here), unknown(key, list(names)))
                self._faults.append(fault)
                continue
            annotation = model.model_fields[name].annotation
            if inner_model(annotation) is None:
                values[name] = value
            elif value is not None or NoneType in get_args(annotation):
                values[name] = self._nested(annotation, value, here)
        return values

    def _nested(self, annotation: Any, value: Any, path: Path) -> Any:
        model = inner_model(annotation)
        if model is None or not isinstance(value, dict | list):
            return value
        if isinstance(value, list):
            return [self._item(model, item, (*path, index)) for index, item in enumerate(value)]
        origin = get_origin(annotation)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {key: self._item(model, item, (*path, key)) for key, item in value.items()}
        return self.fields(model, value, path)

    def _item(self, model: type[BaseModel], item: Any, path: Path) -> Any:
        return self.fields(model, item, path) if isinstance(item, dict) else item
