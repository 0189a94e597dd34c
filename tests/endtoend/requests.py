"""What pods of these tests ask for, and the mix of a burst."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.controlplane.objects import DRIVER, device_request

if TYPE_CHECKING:
    from tests.endtoend.fleet import Fleet, Object

H100 = f"device.attributes['{DRIVER}'].productName.contains('H100')"
L4 = f"device.attributes['{DRIVER}'].productName == 'NVIDIA L4'"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"


def templates(fleet: Fleet) -> None:
    """Templates: one, two, four, eight, two-requests, pair (on one PCIe root), first (an L4, else any)."""
    fleet.template("one")
    fleet.template("two", 2)
    fleet.template("four", 4, [H100])
    fleet.template("eight", 8, [H100])
    fleet.template(
        "two-requests", devices={"requests": [device_request(1, name="a"), device_request(2, name="b")]}
    )
    fleet.template(
        "pair",
        devices={
            "requests": [device_request(2)],
            "constraints": [{"requests": ["gpu"], "matchAttribute": PCIE_ROOT}],
        },
    )
    fleet.template("first", devices={"requests": [first_available()]})


def first_available() -> Object:
    """A request for an L4, of which there is none, else for any GPU."""
    choices: dict[str, Object] = {
        "an-l4": {"deviceClassName": DRIVER, "selectors": [{"cel": {"expression": L4}}]},
        "any": {"deviceClassName": DRIVER},
    }
    alternatives = [
        {"name": name, "allocationMode": "ExactCount", "count": 1, **more} for name, more in choices.items()
    ]
    return {"name": "gpu", "firstAvailable": alternatives}


def mixed(fleet: Fleet, number: int) -> Object:
    """The pods take turns: 200 of them take 153 GPUs. Pods 5 and 11 of each twenty share."""
    shared = f"shared-{number // 20:02d}"
    kinds: list[dict[str, Any]] = [
        {"templates": ["eight"] if number == 0 else ["one"]},
        {},
        {"gpus": 1},
        {"templates": ["two"]},
        {},
        {"claims": [shared]},
        {"templates": ["first"]},
        {"templates": ["four"] if number == 7 else ["one"]},
        {"templates": ["pair"]},
        {},
        {"templates": ["one"]},
        {"claims": [shared]},
        {},
        {"gpus": 2 if number == 13 else 1},
        {"templates": ["one", "one"]} if number == 14 else {},
        {},
        {"templates": ["two-requests"] if number % 40 == 16 else ["one"]},
        {"templates": ["first"]},
        {},
        {},
    ]
    return fleet.pod(f"pod-{number:03d}", **kinds[number % len(kinds)])


def shared_claims(fleet: Fleet, count: int) -> None:
    """The claims that the first `count` pods of the mix share."""
    for number in range((count + 19) // 20):
        fleet.claim(f"shared-{number:02d}")
