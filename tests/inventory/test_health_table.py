"""The table of XIDs, recovery actions and states."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.inventory.health_table import parse_health_table
from extender.model.errors import SettingsError

TEXT = (Path(__file__).resolve().parents[2] / "policies" / "health.yaml").read_text()


def test_the_shipped_table_knows_every_xid_up_to_162() -> None:
    table = parse_health_table(TEXT, "health.yaml")
    assert all(code in table._class_of for code in range(1, 163))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("unknownXid: contactSupport", "unknownXid: nobody", "unknownXid"),
        ("codes: [46, 48", "codes: [13, 46, 48", "xids.resetGpu.codes: 13"),
        ("codes: [46, 48", "codes: [forty, 48", "xids.resetGpu.codes: 'forty'"),
        ("codes: [46, 48", "codes: [50-46, 48", "xids.resetGpu.codes: '50-46'"),
        ("quietSeconds: 300", "quietSeconds: -1", r"\$.quietSeconds"),
        ("rowRemapPending: true", "rowRemapPendin: true", "rowRemapPendin"),
        ("kind: HealthTable", "kind: Policy", "apiVersion, kind"),
        ("kind: HealthTable", "kind: [", "health.yaml"),
    ],
)
def test_a_wrong_table_is_refused_by_file_and_field(old: str, new: str, named: str) -> None:
    assert old in TEXT
    with pytest.raises(SettingsError, match=named) as refused:
        parse_health_table(TEXT.replace(old, new, 1), "health.yaml")
    assert str(refused.value).startswith("health.yaml: ")
