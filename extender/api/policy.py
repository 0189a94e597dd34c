"""policy/v1: disruption budgets, trimmed to the fields in use."""

from __future__ import annotations

from extender.api.base import Wire
from extender.api.meta import LabelSelector, ObjectMeta


class PodDisruptionBudgetSpec(Wire, frozen=True, gc=False):
    """Which pods the budget protects; an empty selector means all pods of the namespace."""

    selector: LabelSelector | None = None
    min_available: str | int | None = None
    max_unavailable: str | int | None = None


class PodDisruptionBudgetStatus(Wire, frozen=True, gc=False):
    """What the disruption controller computed; `disrupted_pods` are evicted but not gone yet (name: time)."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str | None] | None = None


class PodDisruptionBudget(Wire, frozen=True, gc=False):
    """policy/v1 PodDisruptionBudget."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
