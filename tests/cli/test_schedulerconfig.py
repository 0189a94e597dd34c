"""The linter names each trap of a KubeSchedulerConfiguration, with its line, and leaves good files alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from extender.cli.schedulerconfig.extenders import resource_name_fault
from extender.cli.schedulerconfig.fields import duration_seconds
from extender.cli.schedulerconfig.findings import Finding
from extender.cli.schedulerconfig.lint import lint

GOOD = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
clientConnection: {qps: 500, burst: 1000}
profiles:
  - schedulerName: berth-scheduler
    plugins:
      score:
        disabled:
          - name: NodeResourcesFit
          - name: NodeResourcesBalancedAllocation
extenders:
  - urlPrefix: https://berth.berth-system.svc/extender
    filterVerb: filter
    prioritizeVerb: prioritize
    preemptVerb: preempt
    weight: 10
    nodeCacheCapable: true
    ignorable: false
    httpTimeout: 10s
    enableHTTPS: true
    tlsConfig:
      caFile: /etc/berth/ca.crt
"""
SECOND = """\
  - urlPrefix: https://other/extender
    filterVerb: filter
    prioritizeVerb: prioritize
    preemptVerb: preempt
    weight: 1
    nodeCacheCapable: true
    httpTimeout: 10s
"""
SHIPPED = sorted((Path(__file__).parents[2] / "deploy").rglob("kube-scheduler.yaml"))


def changed(old: str, new: str) -> list[Finding]:
    assert old in GOOD
    return lint(GOOD.replace(old, new))


def shown(findings: list[Finding]) -> list[tuple[str, int, str]]:
    return [(finding.severity, finding.line, finding.path) for finding in findings]


def test_a_good_file_has_no_findings() -> None:
    assert lint(GOOD) == []


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: "-".join(path.parts[-4:-2]))
def test_every_file_that_we_ship_has_no_findings(path: Path) -> None:
    assert lint(path.read_text()) == []


def test_the_shipped_files_are_found() -> None:
    assert len(SHIPPED) >= 3


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("nodeCacheCapable: true", "nodeCacheCapable: false", ("error", 18, "extenders[0].nodeCacheCapable")),
        ("    nodeCacheCapable: true\n", "", ("error", 13, "extenders[0].nodeCacheCapable")),
        ("weight: 10", "weight: 0", ("error", 17, "extenders[0].weight")),
        ("weight: 10", "weight: -1", ("error", 17, "extenders[0].weight")),
        ("    weight: 10\n", "", ("error", 13, "extenders[0].weight")),
        ("weight: 10", "weight: 141", ("advice", 17, "extenders[0].weight")),
        ("httpTimeout: 10s", "httpTimeout: 100ms", ("error", 20, "extenders[0].httpTimeout")),
        ("httpTimeout: 10s", "httpTimeout: 2s", ("warning", 20, "extenders[0].httpTimeout")),
        ("httpTimeout: 10s", "httpTimeout: 1m", ("warning", 20, "extenders[0].httpTimeout")),
        ("httpTimeout: 10s", "httpTimeout: -3s", ("error", 20, "extenders[0].httpTimeout")),
        ("httpTimeout: 10s", "httpTimeout: 0s", ("warning", 20, "extenders[0].httpTimeout")),
        ("    httpTimeout: 10s\n", "", ("warning", 13, "extenders[0].httpTimeout")),
        ("httpTimeout: 10s", "httpTimeout: ten", ("error", 20, "extenders[0].httpTimeout")),
        ("filterVerb: filter", "filterVerb: /filter", ("error", 14, "extenders[0].filterVerb")),
        ("preemptVerb: preempt", "preemptVerb: /preempt", ("error", 16, "extenders[0].preemptVerb")),
        ("    filterVerb: filter\n", "", ("error", 13, "extenders[0].filterVerb")),
        ("    preemptVerb: preempt\n", "", ("warning", 13, "extenders[0].preemptVerb")),
        ("ignorable: false", "ignorable: true", ("warning", 19, "extenders[0].ignorable")),
        ("ignorable: false", "bindVerb: bind\n    ignorable: true", ("error", 20, "extenders[0].ignorable")),
        ("https://berth", "http://berth", ("error", 13, "extenders[0].urlPrefix")),
        ("https://berth", "berth", ("error", 13, "extenders[0].urlPrefix")),
        (".svc/extender", ".svc", ("warning", 13, "extenders[0].urlPrefix")),
        ("caFile: /etc/berth/ca.crt", "insecure: true", ("error", 23, "extenders[0].tlsConfig.insecure")),
        ("caFile: /etc/berth/ca.crt", "serverName: x", ("error", 21, "extenders[0].enableHTTPS")),
        (
            "caFile: /etc/berth/ca.crt",
            "caFile: /a\n      certFile: /c",
            ("error", 22, "extenders[0].tlsConfig"),
        ),
        (
            "percentageOfNodesToScore: 100",
            "percentageOfNodesToScore: 50",
            ("error", 3, "percentageOfNodesToScore"),
        ),
        (
            "percentageOfNodesToScore: 100",
            "percentageOfNodesToScore: 0",
            ("error", 3, "percentageOfNodesToScore"),
        ),
        (
            "percentageOfNodesToScore: 100",
            "percentageOfNodesToScore: 101",
            ("error", 3, "percentageOfNodesToScore"),
        ),
        ("percentageOfNodesToScore: 100\n", "", ("error", 1, "percentageOfNodesToScore")),
        ("{qps: 500, burst: 1000}", "{qps: 50}", ("advice", 4, "clientConnection.qps")),
        ("{qps: 500, burst: 1000}", "{}", ("advice", 4, "clientConnection.qps")),
        ("          - name: NodeResourcesFit\n", "", ("advice", 9, "profiles[0].plugins.score.disabled")),
        ("      score:", "      multiPoint:", ("error", 9, "profiles[0].plugins.multiPoint.disabled")),
        ("filterVerb:", "filterverb:", ("error", 14, "extenders[0].filterverb")),
        ("      caFile:", "      caPath:", ("error", 23, "extenders[0].tlsConfig.caPath")),
        ("ignorable: false", "ignorable: 'no'", ("error", 19, "extenders[0].ignorable")),
        ("config.k8s.io/v1", "config.k8s.io/v1beta3", ("error", 1, "apiVersion")),
        ("kind: Kube", "kind: ", ("error", 2, "kind")),
        ("weight: 10\n", "weight: 10\n    weight: 10\n", ("error", 18, "extenders[0].weight")),
    ],
)
def test_a_trap_is_found_on_its_line(old: str, new: str, expected: tuple[str, int, str]) -> None:
    assert expected in shown(changed(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("weight: 10", "weight: 140"),
        ("httpTimeout: 10s", "httpTimeout: 5s"),
        ("httpTimeout: 10s", "httpTimeout: 30s"),
        ("ignorable: false", "bindVerb: bind"),
        (
            "          - name: NodeResourcesFit\n          - name: NodeResourcesBalancedAllocation",
            "          - name: '*'",
        ),
        ("    enableHTTPS: true\n", ""),
        ("qps: 500", "qps: -1"),
        ("  - schedulerName: b", "  - percentageOfNodesToScore: 100\n    schedulerName: b"),
    ],
)
def test_a_change_without_harm_has_no_findings(old: str, new: str) -> None:
    assert changed(old, new) == []


def test_managed_resources_keep_claim_pods_away() -> None:
    findings = changed("ignorable: false", "managedResources: [{name: nvidia.com/gpu}]")
    assert shown(findings) == [("error", 19, "extenders[0].managedResources")]


def test_a_managed_resource_of_kubernetes_itself_is_an_error() -> None:
    findings = changed("ignorable: false", "managedResources:\n    - name: pods.kubernetes.io/x")
    assert ("error", 20, "extenders[0].managedResources[0].name") in shown(findings)


def test_ignored_by_scheduler_overwrites_a_list() -> None:
    findings = changed(
        "ignorable: false", "managedResources:\n    - {name: a.com/b, ignoredByScheduler: true}"
    )
    assert ("warning", 20, "extenders[0].managedResources[0].ignoredByScheduler") in shown(findings)


def test_a_second_binder_is_an_error() -> None:
    text = GOOD.replace("ignorable: false", "bindVerb: bind") + SECOND + "    bindVerb: bind\n"
    assert shown(lint(text)) == [("error", 31, "extenders[1].bindVerb")]


def test_a_resource_managed_twice_is_an_error() -> None:
    managed = "managedResources: [{name: a.com/b}]\n"
    findings = lint(GOOD.replace("ignorable: false\n", managed) + SECOND + f"    {managed}")
    assert ("error", 31, "extenders[1].managedResources[0].name") in shown(findings)


def test_an_ignorable_extender_before_another_is_called_last() -> None:
    findings = lint(GOOD.replace("ignorable: false", "ignorable: true") + SECOND)
    assert ("advice", 19, "extenders[0].ignorable") in shown(findings)


def test_a_profiles_own_percentage_wins() -> None:
    findings = changed("  - schedulerName: b", "  - percentageOfNodesToScore: 10\n    schedulerName: b")
    assert shown(findings) == [("error", 6, "profiles[0].percentageOfNodesToScore")]


def test_without_profiles_the_defaults_are_judged() -> None:
    text = GOOD[: GOOD.index("profiles:")] + GOOD[GOOD.index("extenders:") :]
    assert [finding.severity for finding in lint(text)] == ["advice", "advice"]


def test_a_file_without_extenders_never_asks_berth() -> None:
    assert shown(lint(GOOD[: GOOD.index("extenders:")])) == [("error", 1, "extenders")]


@pytest.mark.parametrize("text", ["", "[]", "x", "a: [", "\x00"])
def test_text_that_is_no_configuration_is_one_error(text: str) -> None:
    assert [finding.severity for finding in lint(text)] == ["error"]


def test_every_finding_says_what_happens_and_the_mend() -> None:
    findings = lint("extenders: [{weight: 1, ignorable: true}, {bindVerb: /b}, {bindVerb: c, surprise: 1}]")
    assert len(findings) > 10
    assert all(finding.happens and finding.mend for finding in findings)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10),
        ("1m30s", 90),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("100ms", 0.1),
        ("0", 0),
        ("-2s", -2),
        ("1h", 3600),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, seconds: float) -> None:
    assert duration_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "10", "s", "10 s", "1d", "--1s", "ten", "10s!"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert duration_seconds(text) is None


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("nvidia.com/gpu", ""),
        ("gpu", "has no domain"),
        ("kubernetes.io/gpu", "belongs to Kubernetes itself"),
        ("deviceclass.resource.kubernetes.io/gpu", "belongs to Kubernetes itself"),
        ("requests.nvidia.com/gpu", "is a quota name"),
    ],
)
def test_extended_resource_names_are_judged_as_the_scheduler_does(name: str, fault: str) -> None:
    assert resource_name_fault(name) == fault


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["extenders", "profiles", "plugins", "score", "disabled", "weight", "urlPrefix", "tlsConfig"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=15,
)


@given(_VALUES)
def test_any_document_is_linted_without_a_crash(value: object) -> None:
    assert isinstance(lint(yaml.safe_dump(value)), list)
