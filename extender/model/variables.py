"""Environment variables held against a pydantic model: PREFIX + SECTION__FIELD, nested by two underscores.

Never: the environment of the process; a mapping is passed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource
from pydantic_settings.exceptions import SettingsError as SourceError

from extender.model.schema import inner_model, unknown

DELIMITER = "__"

Steps = tuple[str, ...]


def leaves(model: type[BaseModel], steps: Steps = ()) -> Iterator[tuple[Steps, FieldInfo]]:
    """Every field that is no section, by its path of field names."""
    for name, field in model.model_fields.items():
        inner = inner_model(field.annotation)
        if inner is None:
            yield (*steps, name), field
        else:
            yield from leaves(inner, (*steps, name))


def variable(prefix: str, steps: Sequence[str]) -> str:
    """The variable of a field."""
    return prefix + DELIMITER.join(step.upper() for step in steps)


def variables(model: type[BaseModel], prefix: str) -> dict[str, Steps]:
    """Every variable of a model and the field that it sets."""
    return {variable(prefix, steps): steps for steps, _ in leaves(model)}


def overlay(
    values: dict[str, Any], model: type[BaseModel], environ: Mapping[str, str], prefix: str
) -> list[str]:
    """Put what the variables say over `values`; the complaints about variables that can't be used.

    A variable without two underscores is not ours: Kubernetes makes BERTH_PORT for a Service called berth.
    """
    known = variables(model, prefix)
    complaints: list[str] = []
    for name in sorted(environ):
        if name in known:
            try:
                _merge(values, _Environment(model, prefix, name, environ[name])())
            except SourceError as error:
                complaints.append(f"variable {name}: no JSON: {error.__cause__}")
        elif name.startswith(prefix) and DELIMITER in name:
            complaints.append(f"variable {name}: {unknown(name, list(known))}")
    return complaints


class _Environment(EnvSettingsSource):
    """The library's reading of environment variables: of one, which need not be the process's."""

    def __init__(self, model: type[BaseModel], prefix: str, name: str, value: str) -> None:
        self._given = {name.lower(): value}
        # The source reads fields and configuration only, which every model has.
        source: Any = model
        settings_class: type[BaseSettings] = source
        super().__init__(
            settings_class, case_sensitive=False, env_prefix=prefix, env_nested_delimiter=DELIMITER
        )

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return self._given


def _merge(into: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        below = into.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            _merge(below, value)
        else:
            into[key] = value
