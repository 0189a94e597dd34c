"""Policies: how much each judge counts, by workload class and namespace. YAML in `policies/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from extender.model.errors import SettingsError
from extender.model.workload import WorkloadClass
from extender.scoring.thresholds import Thresholds

Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Metadata(_Model):
    """Name of the policy."""

    name: str


class Overrides(_Model):
    """Weights that win over the policy's own."""

    judges: dict[str, Weight] = Field(default_factory=dict)


class Policy(_Model):
    """Weight by judge; `classes` over the policy's own weights, `namespaces` over both."""

    apiVersion: Literal["berth.scheduler/v1alpha1"]  # noqa: N815 - as written in the file
    kind: Literal["Policy"]
    metadata: Metadata
    judges: dict[str, Weight]
    ties: Literal["first", "random"] = "first"
    classes: dict[WorkloadClass, Overrides] = Field(default_factory=dict)
    namespaces: dict[str, Overrides] = Field(default_factory=dict)
    thresholds: Thresholds = Field(default_factory=Thresholds)

    def weights(self, workload: WorkloadClass, namespace: str) -> dict[str, float]:
        """Weights for a pod, zero ones left out."""
        weights = dict(self.judges)
        for over in (self.classes.get(workload), self.namespaces.get(namespace)):
            if over is not None:
                weights.update(over.judges)
        return {name: weight for name, weight in weights.items() if weight}


def parse_policy(document: Mapping[str, object], judges: Sequence[str], where: str) -> Policy:
    """Read a policy document. `judges` are the names that exist, `where` names the file in errors.

    Raises SettingsError that names each bad field; a judge that does not exist is an error, never ignored.
    """
    try:
        policy = Policy.model_validate(document)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise SettingsError(f"{where}: " + "; ".join(faults)) from error
    named = {"judges": policy.judges}
    named |= {f"classes.{name}.judges": over.judges for name, over in policy.classes.items()}
    named |= {f"namespaces.{name}.judges": over.judges for name, over in policy.namespaces.items()}
    for place, weights in named.items():
        for name in weights:
            if name not in judges:
                raise SettingsError(f"{where}: {place}.{name}: no such judge, known are {', '.join(judges)}")
    return policy
