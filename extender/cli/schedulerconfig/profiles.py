"""Rules about the rest: how many nodes are offered, which scores stay on, how fast claims are written."""

from __future__ import annotations

from extender.cli.schedulerconfig.findings import Fields, Findings
from extender.model.document import Path

REPLACED_SCORES = ("NodeResourcesFit", "NodeResourcesBalancedAllocation")
FEWEST_QPS = 200.0
DEFAULT_QPS = 50.0


def check_profiles(configuration: Fields, findings: Findings) -> None:
    """Apply every rule about profiles and the client; no `profiles` means one with the defaults."""
    _check_client(configuration.section("clientConnection"), findings)
    profiles = configuration.items("profiles")
    everywhere = configuration.integer("percentageOfNodesToScore")
    if not profiles:
        _check_percentage(everywhere, configuration.at("percentageOfNodesToScore"), findings)
        _check_scores(Fields({}, configuration.at("profiles")), findings)
    for profile in profiles:
        own = profile.integer("percentageOfNodesToScore")
        path = profile if own is not None else configuration
        _check_percentage(
            own if own is not None else everywhere, path.at("percentageOfNodesToScore"), findings
        )
        _check_scores(profile, findings)


def _check_percentage(percentage: int | None, path: Path, findings: Findings) -> None:
    mend = "percentageOfNodesToScore: 100"
    if percentage == 100 or any(finding.path == "percentageOfNodesToScore" for finding in findings.found):
        return
    if percentage is not None and not 0 <= percentage <= 100:
        findings.add("error", path, "kube-scheduler does not start: 0 to 100 is allowed", mend)
        return
    findings.add(
        "error",
        path,
        "above 100 nodes the extender is offered another part of them each time; if it refuses all of it the "
        "pod fails although a node fits, and a planned node may not be offered",
        mend,
    )


def _check_scores(profile: Fields, findings: Findings) -> None:
    plugins = profile.section("plugins")
    scores, everywhere = plugins.section("score"), plugins.section("multiPoint")
    for name in REPLACED_SCORES:
        if name in _names(everywhere, "disabled") and name == "NodeResourcesFit":
            findings.add(
                "error",
                everywhere.at("disabled"),
                "NodeResourcesFit's filter is off too: nodes without CPU and memory are offered",
                "disable it under plugins.score only",
            )
        off = _names(scores, "disabled") | _names(everywhere, "disabled")
        on = _names(scores, "enabled")
        if name in on or not off & {name, "*"}:
            findings.add(
                "advice",
                scores.at("disabled") if scores.values else profile.path,
                f"the score of {name} counts beside Berth's judges, which replace it, and pulls pods apart",
                f"list {name} in plugins.score.disabled",
            )


def _check_client(client: Fields, findings: Findings) -> None:
    qps = client.number("qps")
    asked = qps or DEFAULT_QPS
    if 0 < asked < FEWEST_QPS:
        findings.add(
            "advice",
            client.at("qps"),
            f"at {asked:g} writes a second the allocation of a claim can follow the reply by more than 10 s "
            "in a burst; so long its node stays in flight and no plan can use it",
            "clientConnection: {qps: 500, burst: 1000}",
        )


def _names(plugins: Fields, name: str) -> set[str]:
    return {plugin.text("name") for plugin in plugins.items(name)}
