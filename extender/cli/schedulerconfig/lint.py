"""The door: a KubeSchedulerConfiguration in, its findings out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from extender.cli.schedulerconfig.extenders import check_extender
from extender.cli.schedulerconfig.fields import CONFIGURATION, check_fields
from extender.cli.schedulerconfig.findings import Fields, Finding, Findings
from extender.cli.schedulerconfig.profiles import check_profiles
from extender.model.document import DocumentError, read_documents

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"


def lint(text: str) -> list[Finding]:
    """Every finding about a configuration, by line; text that is no YAML is one finding."""
    try:
        documents = list(read_documents(text))
    except DocumentError as error:
        return [Finding("error", error.line, "", f"is no YAML: {error.text}", "correct the file")]
    if not documents or not isinstance(documents[0].value, dict):
        return [Finding("error", 1, "", "is no configuration", f"write a {KIND}")]
    findings = Findings(documents[0])
    for fault in documents[0].repeated:
        happens = f"{fault.text}; kube-scheduler refuses the file"
        findings.found.append(Finding("error", fault.line, fault.path, happens, "keep one"))
    if len(documents) > 1:
        findings.found.append(
            Finding("error", documents[1].line(()), "", "is a second document, which is not read", "keep one")
        )
    configuration = Fields(documents[0].value, ())
    _check_kind(configuration, findings)
    check_fields(configuration.values, CONFIGURATION, (), findings)
    check_profiles(configuration, findings)
    extenders = configuration.items("extenders")
    if not extenders:
        findings.add("error", ("extenders",), "there is no extender: Berth is never asked", "add Berth")
    for extender in extenders:
        check_extender(extender, findings)
    _check_together(extenders, findings)
    return sorted(findings.found, key=lambda finding: finding.line)


def _check_kind(configuration: Fields, findings: Findings) -> None:
    for name, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if configuration.values.get(name) != expected:
            findings.add(
                "error",
                (name,),
                "kube-scheduler 1.34 or later does not read this file",
                f"{name}: {expected}",
            )


def _check_together(extenders: Sequence[Fields], findings: Findings) -> None:
    binders = [extender for extender in extenders if extender.text("bindVerb")]
    for extender in binders[1:]:
        findings.add(
            "error",
            extender.at("bindVerb"),
            "kube-scheduler does not start: only one extender may bind",
            "keep bindVerb in one extender",
        )
    claimed: set[str] = set()
    for extender in extenders:
        for resource in extender.items("managedResources"):
            name = resource.text("name")
            if name in claimed:
                findings.add(
                    "error",
                    resource.at("name"),
                    f"kube-scheduler does not start: {name!r} is managed twice",
                    "keep it in one extender",
                )
            claimed.add(name)
    for extender, following in itertools.pairwise(extenders):
        if extender.flag("ignorable") and not following.flag("ignorable"):
            findings.add(
                "advice",
                extender.at("ignorable"),
                "ignorable extenders are called after all others, whatever their place in the file",
                "write it after the others, to see what happens",
            )
