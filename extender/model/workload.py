"""Workload classes (design: workload identity)."""

from __future__ import annotations

from enum import StrEnum

PREFIX = "berth.scheduler/"
"""Prefix of every label, annotation and gate of ours."""


class WorkloadClass(StrEnum):
    """What a pod is for. NONE asks for no accelerator, UNKNOWN can't be told."""

    TRAINING = "training"
    INFERENCE = "inference"
    BATCH = "batch"
    INTERACTIVE = "interactive"
    UNKNOWN = "unknown"
    NONE = "none"
