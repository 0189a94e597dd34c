"""Policies: which weights a pod gets, and how a bad file is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.model.errors import SettingsError
from extender.model.workload import WorkloadClass
from extender.scoring.policy import parse_policy

JUDGES = ("pack", "spread", "pool", "telemetry")
SHIPPED = Path(__file__).resolve().parents[2] / "policies" / "default.yaml"


def document(**more: Any) -> dict[str, Any]:
    head = {"apiVersion": "berth.scheduler/v1alpha1", "kind": "Policy", "metadata": {"name": "p"}}
    return {**head, "judges": {"pack": 3, "pool": 5}, **more}


def test_namespaces_win_over_classes_and_classes_over_the_policy() -> None:
    policy = parse_policy(
        document(
            classes={"inference": {"judges": {"pack": 0, "spread": 3}}},
            namespaces={"ml": {"judges": {"spread": 7}}},
        ),
        JUDGES,
        "file",
    )
    assert policy.weights(WorkloadClass.TRAINING, "ns") == {"pack": 3, "pool": 5}
    assert policy.weights(WorkloadClass.INFERENCE, "ns") == {"spread": 3, "pool": 5}
    assert policy.weights(WorkloadClass.INFERENCE, "ml") == {"spread": 7, "pool": 5}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"judges": {"pakc": 1}}, "judges.pakc: no such judge, known are pack, spread, pool, telemetry"),
        ({"classes": {"batch": {"judges": {"x": 1}}}}, "classes.batch.judges.x: no such judge"),
        ({"namespaces": {"ml": {"judges": {"x": 1}}}}, "namespaces.ml.judges.x: no such judge"),
        ({"classes": {"gaming": {}}}, "classes.gaming"),
        ({"judges": {"pack": -1}}, "judges.pack"),
        ({"judges": {"pack": float("nan")}}, "judges.pack"),
        ({"judges": {"pack": "heavy"}}, "judges.pack"),
        ({"kind": "Polisy"}, "kind"),
        ({"metadata": {}}, "metadata.name"),
        ({"extra": 1}, "extra"),
        ({"thresholds": {"temperatureC": 25}}, "thresholds.temperatureC"),
        ({"thresholds": {"eccQuietHours": 0}}, "thresholds.eccQuietHours"),
        ({"thresholds": {"temperature": 80}}, "thresholds.temperature"),
    ],
)
def test_an_error_names_file_and_field(more: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_policy(document(**more), JUDGES, "policies/mine.yaml")
    assert str(caught.value).startswith("policies/mine.yaml: ")
    assert words in str(caught.value)


def test_the_shipped_policy_is_valid_and_weighs_every_class() -> None:
    policy = parse_policy(yaml.safe_load(SHIPPED.read_text("utf-8")), JUDGES, "default")
    for workload in WorkloadClass:
        assert policy.weights(workload, "ns")
    assert "pool" in policy.weights(WorkloadClass.NONE, "ns")
