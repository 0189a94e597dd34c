"""`berth selectors check` prints compile results, matches and explanations."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from extender.api.resource import DeviceAttribute
from extender.cli.selectors import check_selectors
from extender.model.device import DeviceFacts

DEVICES = [
    ("node-a/gpu-0", DeviceFacts(driver="d", attributes={"model": DeviceAttribute(string="A100")})),
    ("node-b/gpu-0", DeviceFacts(driver="d", attributes={"model": DeviceAttribute(string="H100")})),
    ("node-c/gpu-0", DeviceFacts(driver="d")),
]


def printed(source: str, devices: list[tuple[str, DeviceFacts]] | None = None) -> tuple[int, str]:
    console = Console(record=True, width=240, file=None)
    status = check_selectors(source, console, DEVICES if devices is None else devices)
    return status, console.export_text()


def test_matches_and_explanations_are_printed() -> None:
    status, text = printed("device.attributes['d'].model == 'H100'")
    assert status == 0
    assert "matches 1 of 3: node-b/gpu-0" in text
    assert '"A100"' in text
    assert "no such key: model" in text
    assert "has(" in text


def test_a_selector_without_a_match_has_its_own_status() -> None:
    assert printed("device.driver == 'e'")[0] == 1


def test_an_expression_that_does_not_compile_shows_where() -> None:
    status, text = printed("device.name == 'x'")
    assert status == 2
    assert "ERROR: <input>:1:7: undefined field 'name'" in text


def test_selectors_are_taken_from_objects_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "class.yaml"
    path.write_text(
        "kind: DeviceClass\nspec:\n  selectors:\n  - cel:\n      expression: device.driver == 'd'\n"
    )
    status, text = printed(str(path))
    assert status == 0
    assert "matches 3 of 3" in text


def test_a_difference_to_the_second_opinion_is_shown() -> None:
    assert "cel-python differs on node-a/gpu-0" in printed("device.attributes['d'].?model.hasValue()")[1]


def test_without_devices_only_the_compile_result_is_shown() -> None:
    status, text = printed("true", [])
    assert status == 0
    assert "compiles; result bool" in text
