"""Settings from a YAML file and variables, each fault told by its line or variable; and their description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pydantic
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from extender.model.describing import default_text, type_text
from extender.model.document import Document, DocumentError, Fault, dotted, read_documents
from extender.model.errors import SettingsError
from extender.model.schema import fault_text, field_to_blame, spelled, written_path
from extender.model.variables import leaves, overlay, variable, variables
from extender.settings.whole import Settings

PREFIX = "BERTH_"

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class SettingDoc:
    """A setting as the documentation shows it."""

    key: str
    variable: str
    type: str
    default: str
    text: str


def load(path: Path | None, environ: Mapping[str, str]) -> Settings:
    """Read the settings from `path` (None: defaults) and from the BERTH_* variables of `environ`.

    Raises:
        SettingsError: As `load_model`.
    """
    return load_model(Settings, path, environ, PREFIX)


def load_model(model: type[M], path: Path | None, environ: Mapping[str, str], prefix: str) -> M:
    """Read any model in the same way, with variables of another prefix.

    Raises:
        SettingsError: Something is wrong. The text has a line for every fault, each with the file, the line
            and the field, or with the name of the variable.
    """
    document = _read(path) if path is not None else Document({}, {})
    values, faults = spelled(model, document)
    complaints = overlay(values, model, environ, prefix)
    given = {steps: name for name, steps in variables(model, prefix).items() if name in environ}
    try:
        settings = model(**values)
    except pydantic.ValidationError as error:
        for detail in error.errors(include_url=False):
            blamed = field_to_blame(detail)
            name = given.get(tuple(step for step in blamed if isinstance(step, str)))
            if name is not None:
                complaints.append(f"variable {name}: {fault_text(detail)}")
                continue
            written = written_path(model, blamed)
            faults.append(Fault(document.line(written), dotted(written), fault_text(detail)))
    else:
        if not faults and not complaints:
            return settings
    in_file = [f"{path or 'defaults'}:{line}: {field}: {text}" for line, field, text in sorted(faults)]
    raise SettingsError("\n".join(in_file + complaints))


def describe(model: type[BaseModel], prefix: str) -> Iterator[SettingDoc]:
    """Every setting of a model, in its order."""
    for steps, field in leaves(model):
        yield SettingDoc(
            key=".".join(to_camel(step) for step in steps),
            variable=variable(prefix, steps),
            type=type_text(field.annotation),
            default="required" if field.is_required() else default_text(field.default),
            text=" ".join((field.description or "").split()),
        )


def _read(path: Path) -> Document:
    try:
        documents = list(read_documents(path.read_text(encoding="utf-8")))
    except DocumentError as error:
        raise SettingsError(f"{path}:{error.line}: {error.text}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: can't be read: {error}") from error
    if len(documents) > 1:
        raise SettingsError(f"{path}:{documents[1].line(())}: one document is expected, this is the second")
    return documents[0] if documents else Document(None, {})
