"""Views as tables for people.

Never: a number that is not in the view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from extender.verbs.views import (
    DecisionView,
    DeviceCount,
    ExplainNode,
    ExplainView,
    FleetView,
    NodeRow,
    PredictedDevice,
    ResourceCount,
)

OUTCOME_STYLES = {"right": "green", "wrong": "bold red", "unpredicted": "yellow", "pending": "dim"}


def fleet_table(fleet: FleetView) -> RenderableType:
    """The fleet: totals by driver and product, then a row a node."""
    totals = _table("driver", "product", "total", "free", "taken", "unavailable")
    for count in fleet.totals:
        totals.add_row(*_count(count))
    nodes = _table("node", "state", "devices free / total", "plugin resources requested / allocatable")
    for node in fleet.nodes:
        nodes.add_row(node.name, _state(node), _devices(node.devices), _resources(node.resources))
    return Group(totals, nodes)


def explain_table(view: ExplainView) -> RenderableType:
    """What would be said of each node, with every judge's opinion below it."""
    head = Text(f"{view.pod_namespace}/{view.pod_name} ({view.workload_class}): ")
    head.append(f"{view.passed} of {view.candidates} nodes pass")
    if view.rejected:
        head.append(f"; refused: {_by_reason(view.rejected)}")
    if view.shadow:
        head.append("; shadow mode: the scheduler is told yes")
    if view.note:
        head.append(f"; {view.note}")
    nodes = _table("node", "verdict", "reason", "predicted devices", "score", "judges")
    for node in view.nodes:
        nodes.add_row(
            node.name,
            Text(node.verdict, "green" if node.verdict == "passed" else "red"),
            Text("\n".join(_why(node))),
            _predicted(node.predicted, node.unpredicted),
            "" if node.score is None else f"{node.score} ({node.total:.3f})",
            Text("\n".join(_judges(node))),
        )
    return Group(head, nodes)


def decisions_table(decisions: Sequence[DecisionView]) -> RenderableType:
    """The newest decisions."""
    rows = _table("time", "pod", "verb", "passed", "refused", "node", "predicted devices", "outcome")
    for decision in decisions:
        rows.add_row(
            datetime.fromtimestamp(decision.time, UTC).strftime("%Y-%m-%d %H:%M:%SZ"),
            f"{decision.pod_namespace}/{decision.pod_name}",
            decision.verb + (" (shadow)" if decision.shadow else ""),
            f"{decision.passed} of {decision.candidates}",
            Text(decision.text or _by_reason(decision.rejected)),
            decision.node,
            _predicted(decision.predicted, decision.unpredicted),
            Text(decision.outcome, OUTCOME_STYLES[decision.outcome]),
        )
    return rows


def _table(*columns: str) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="bold", box=None)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _count(count: DeviceCount) -> tuple[str, ...]:
    numbers = (count.total, count.free, count.taken, count.unavailable)
    return (count.driver, count.product, *map(str, numbers))


def _state(node: NodeRow) -> Text:
    if not node.ready:
        return Text("not ready", "red")
    return Text("ready") if node.schedulable else Text("cordoned", "yellow")


def _devices(counts: Sequence[DeviceCount]) -> Text:
    return Text(
        "\n".join(f"{count.free} / {count.total} {count.product or count.driver}" for count in counts)
    )


def _resources(counts: Sequence[ResourceCount]) -> Text:
    return Text("\n".join(f"{count.requested} / {count.allocatable} {count.name}" for count in counts))


def _predicted(devices: Sequence[PredictedDevice], reason: str) -> Text:
    if not devices and reason:
        return Text(f"none: {reason}", "yellow")
    return Text("\n".join(device.device for device in devices))


def _judges(node: ExplainNode) -> Iterator[str]:
    for judge in node.judges:
        evidence = f": {judge.evidence}" if judge.evidence else ""
        yield f"{judge.judge} {judge.score:.3f} x {judge.weight:g}{evidence}"


def _why(node: ExplainNode) -> Iterator[str]:
    if node.reason or node.text:
        yield ": ".join(filter(None, (node.reason, node.text)))
    if node.details:
        yield node.details
    if node.unpublished:
        yield f"seen, but in no slice: {', '.join(node.unpublished)}"


def _by_reason(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
