"""Rules about one extender: its address, its verbs, what it is asked about, how long it may take."""

from __future__ import annotations

from urllib.parse import urlsplit

from extender.cli.schedulerconfig.fields import duration_seconds
from extender.cli.schedulerconfig.findings import Fields, Findings

VERBS = ("filterVerb", "prioritizeVerb", "preemptVerb", "bindVerb")

DEFAULT_TIMEOUT = 5.0
SHORTEST_TIMEOUT = 1.0
SHORT_TIMEOUT = 5.0
LONG_TIMEOUT = 30.0

HIGHEST_WEIGHT = 140
"""One rank is weight x 10 points, and the in-tree scores add up to at most 1,400."""


def check_extender(extender: Fields, findings: Findings) -> None:
    """Apply every rule about one extender."""
    _check_address(extender, findings)
    _check_verbs(extender, findings)
    _check_weight(extender, findings)
    _check_timeout(extender, findings)
    _check_pods(extender, findings)
    if not extender.flag("nodeCacheCapable"):
        findings.add(
            "error",
            extender.at("nodeCacheCapable"),
            "every request carries all nodes in full (50 MB at 5,000 nodes), and the nodes in the reply are "
            "scored as if they were empty",
            "nodeCacheCapable: true",
        )
    if extender.flag("ignorable"):
        _check_ignorable(extender, findings)


def _check_address(extender: Fields, findings: Findings) -> None:
    prefix, tls = extender.text("urlPrefix"), extender.section("tlsConfig")
    scheme = urlsplit(prefix).scheme if prefix else ""
    at = extender.at("urlPrefix")
    if scheme not in ("http", "https"):
        findings.add(
            "error",
            at,
            "every call fails: the address has no scheme http or https"
            if prefix
            else "there is no address to call",
            "urlPrefix: https://HOST:PORT/extender",
        )
        return
    if not prefix.rstrip("/").endswith("/extender"):
        findings.add(
            "warning",
            at,
            "Berth answers below /extender; at another path every call is a 404",
            "let urlPrefix end in /extender, unless this extender is not Berth",
        )
    if scheme == "http" and (extender.flag("enableHTTPS") or tls.values):
        findings.add(
            "error",
            at,
            "the scheme decides: calls go over plain HTTP, whatever enableHTTPS and tlsConfig say",
            "write https:// in urlPrefix, or remove enableHTTPS and tlsConfig",
        )
    if scheme == "https":
        _check_tls(extender, tls, findings)


def _check_tls(extender: Fields, tls: Fields, findings: Findings) -> None:
    ca = tls.text("caFile") or tls.text("caData")
    mend = "give tlsConfig.caFile, the CA of Berth's certificate"
    if tls.flag("insecure"):
        happens = (
            "kube-scheduler does not start: a CA and insecure exclude each other"
            if ca
            else "anybody on the way can answer in Berth's name and decide where pods go"
        )
        findings.add("error", tls.at("insecure"), happens, f"remove insecure; {mend}")
    elif extender.flag("enableHTTPS") and not ca:
        findings.add(
            "error",
            extender.at("enableHTTPS"),
            "without a CA enableHTTPS switches the check of the certificate off: anybody on the way can "
            "answer in Berth's name",
            mend,
        )
    certificate, key = (tls.text(f"{part}File") or tls.text(f"{part}Data") for part in ("cert", "key"))
    if bool(certificate) != bool(key):
        findings.add(
            "error",
            tls.path,
            "kube-scheduler can't show a client certificate without its key, or the reverse",
            "give both certFile and keyFile, or neither",
        )


def _check_verbs(extender: Fields, findings: Findings) -> None:
    for name in VERBS:
        verb, prefix = extender.text(name), extender.text("urlPrefix").rstrip("/")
        if verb.startswith("/"):
            findings.add(
                "error",
                extender.at(name),
                f"the address becomes {prefix}/{verb}, with two slashes: a 404",
                f"{name}: {verb.lstrip('/') or name.removesuffix('Verb')}",
            )
    if not extender.text("filterVerb"):
        findings.add(
            "error",
            extender.at("filterVerb"),
            "the extender is never asked which nodes may be used: no rule holds, no device is predicted",
            "filterVerb: filter",
        )
    if not extender.text("prioritizeVerb"):
        findings.add(
            "advice",
            extender.at("prioritizeVerb"),
            "the extender is never asked which nodes are better",
            "prioritizeVerb: prioritize, with a weight",
        )
    if not extender.text("preemptVerb"):
        findings.add(
            "warning",
            extender.at("preemptVerb"),
            "pods are evicted for a place that Berth may then refuse",
            "preemptVerb: preempt",
        )


def _check_weight(extender: Fields, findings: Findings) -> None:
    weight = extender.integer("weight")
    at = extender.at("weight")
    if extender.text("prioritizeVerb"):
        if weight is None or weight <= 0:
            findings.add(
                "error",
                at,
                "kube-scheduler does not start: prioritizeVerb needs a positive weight, which has no default",
                "weight: 10",
            )
        elif weight > HIGHEST_WEIGHT:
            findings.add(
                "advice",
                at,
                "one rank of Berth outweighs all other scores together, a user's preferred affinity too",
                "weight: 10, unless that is wanted",
            )
    elif weight is not None:
        findings.add(
            "warning", at, "the weight is not used without prioritizeVerb", "prioritizeVerb: prioritize"
        )


def _check_timeout(extender: Fields, findings: Findings) -> None:
    at = extender.at("httpTimeout")
    text = extender.text("httpTimeout")
    seconds = duration_seconds(text) if text else 0.0
    mend = "httpTimeout: 10s"
    if seconds is None:
        return
    if seconds == 0:
        findings.add(
            "warning",
            at,
            f"the default of {DEFAULT_TIMEOUT:g} s holds; a restart of Berth may take longer",
            mend,
        )
    elif seconds < SHORTEST_TIMEOUT:
        findings.add(
            "error",
            at,
            "calls are cut off in ordinary pauses; each one costs the pod its attempt and a back-off",
            mend,
        )
    elif seconds < SHORT_TIMEOUT:
        findings.add("warning", at, "calls may be cut off when Berth is busy or is being replaced", mend)
    elif seconds > LONG_TIMEOUT:
        findings.add(
            "warning", at, "one call that hangs holds up the scheduling of every pod for that long", mend
        )


def _check_pods(extender: Fields, findings: Findings) -> None:
    managed = extender.items("managedResources")
    if managed:
        findings.add(
            "error",
            extender.at("managedResources"),
            "only pods with these resources in their containers are sent: pods that ask by resource claims "
            "pass by all verbs, and so do pods without accelerators",
            "remove managedResources; Berth answers at once for pods that are not its business",
        )
    for resource in managed:
        name = resource.text("name")
        fault = resource_name_fault(name)
        if fault:
            findings.add(
                "error",
                resource.at("name"),
                f"kube-scheduler does not start: {name!r} {fault}",
                "name an extended resource (nvidia.com/gpu)",
            )
        if resource.flag("ignoredByScheduler"):
            findings.add(
                "warning",
                resource.at("ignoredByScheduler"),
                "the scheduler no longer counts this resource, and the list replaces ignoredResources of "
                "NodeResourcesFitArgs in every profile",
                "remove ignoredByScheduler",
            )


def resource_name_fault(name: str) -> str:
    """Why a name is no extended resource (helper.IsExtendedResourceName), "" if it is one."""
    domain, slash, _ = name.partition("/")
    if not slash:
        return "has no domain"
    if domain == "kubernetes.io" or domain.endswith(".kubernetes.io"):
        return "belongs to Kubernetes itself"
    if name.startswith("requests."):
        return "is a quota name"
    return ""


def _check_ignorable(extender: Fields, findings: Findings) -> None:
    at = extender.at("ignorable")
    if extender.text("bindVerb"):
        findings.add(
            "error",
            at,
            "when bind fails the scheduler binds the pod by itself, to a node that Berth has just refused",
            "ignorable: false",
        )
    else:
        findings.add(
            "warning",
            at,
            "while Berth is down or slow pods are placed without it, against plans that it has promised",
            "ignorable: false",
        )
