"""Settings: one file, the environment over it, and every fault named with its line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.errors import SettingsError
from extender.settings import PREFIX, Settings, describe, load
from extender.telemetry.agent.settings import AgentSettings


def write(folder: Path, text: str) -> Path:
    path = folder / "berth.yaml"
    path.write_text(text)
    return path


def faults(path: Path | None, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(path, environ or {})
    return str(caught.value).splitlines()


def test_the_defaults_are_valid_and_listen_on_loopback_only() -> None:
    settings = load(None, {})
    assert settings == Settings()
    assert settings.server.is_loopback()


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    assert load(write(tmp_path, "# nothing\n"), {}) == Settings()


def test_an_empty_section_counts_as_left_out(tmp_path: Path) -> None:
    assert load(write(tmp_path, "logging:\n"), {}) == Settings()


def test_the_file_is_spelled_in_camel_case(tmp_path: Path) -> None:
    settings = load(write(tmp_path, "leaderElection: {leaseName: other}\n"), {})
    assert settings.leader_election.lease_name == "other"


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "server: {port: 1000, bodyLimitBytes: 70000}\n")
    settings = load(path, {"BERTH_SERVER__PORT": "2000"})
    assert (settings.server.port, settings.server.body_limit_bytes) == (2000, 70000)


def test_a_nested_optional_section_can_come_from_the_environment_alone() -> None:
    settings = load(None, {"BERTH_SERVER__TLS__CERT_FILE": "/c", "BERTH_SERVER__TLS__KEY_FILE": "/k"})
    assert settings.server.tls is not None
    assert settings.server.tls.key_file == Path("/k")


def test_a_list_comes_from_the_environment_as_json() -> None:
    assert load(None, {"BERTH_SCHEDULER__NAMES": '["a", "b"]'}).scheduler.names == ("a", "b")


def test_a_list_that_is_no_json_names_its_variable() -> None:
    assert faults(None, {"BERTH_SCHEDULER__NAMES": "a,b"})[0].startswith(
        "variable BERTH_SCHEDULER__NAMES: no JSON"
    )


def test_variables_that_kubernetes_makes_for_a_service_called_berth_are_not_ours() -> None:
    environ = {
        "BERTH_PORT": "tcp://10.0.0.1:443",
        "BERTH_SERVICE_HOST": "10.0.0.1",
        "BERTH_PORT_443_TCP": "x",
    }
    assert load(None, environ) == Settings()


def test_an_unknown_variable_is_an_error_that_names_the_near_one() -> None:
    [fault] = faults(None, {"BERTH_SERVER__PROT": "1"})
    assert fault == "variable BERTH_SERVER__PROT: unknown key; did you mean 'BERTH_SERVER__PORT'?"


def test_a_bad_variable_is_named_and_not_a_line_of_the_file(tmp_path: Path) -> None:
    [fault] = faults(write(tmp_path, "server: {port: 1}\n"), {"BERTH_SERVER__PORT": "many"})
    assert fault.startswith("variable BERTH_SERVER__PORT: ")


def test_every_fault_is_listed_with_its_line_and_field(tmp_path: Path) -> None:
    text = """server:
  prot: 80
  keepAliveSeconds: 5
  tls:
    certFile: /x
scheduler:
  mode: shadwo
  names:
    - good
    - 7
kube:
  source: embedded
leader_election: {}
decisions: 3
"""
    path = write(tmp_path, text)
    found = [line.removeprefix(f"{path}:").split(": ")[:2] for line in faults(path)]
    assert found == [
        ["2", "server.prot"],
        ["3", "server.keepAliveSeconds"],
        ["4", "server.tls.keyFile"],
        ["7", "scheduler.mode"],
        ["10", "scheduler.names[1]"],
        ["12", "kube.source"],
        ["13", "leader_election"],
        ["14", "decisions"],
    ]


def test_snake_case_in_the_file_is_pointed_to_camel_case(tmp_path: Path) -> None:
    assert faults(write(tmp_path, "leader_election: {}\n"))[0].endswith("did you mean 'leaderElection'?")


def test_a_key_given_twice_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "server: {port: 1}\nserver: {port: 2}\n")
    assert faults(path) == [f"{path}:2: server: is given twice"]


def test_a_second_document_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "server: {}\n---\nserver: {}\n")
    assert faults(path) == [f"{path}:3: one document is expected, this is the second"]


@pytest.mark.parametrize("text", ["[1]", "word", "3"])
def test_a_document_that_is_no_mapping_is_an_error(tmp_path: Path, text: str) -> None:
    assert "a mapping of sections is expected" in faults(write(tmp_path, text))[0]


def test_text_that_is_no_yaml_names_the_line(tmp_path: Path) -> None:
    path = write(tmp_path, "server:\n  port: [1\nkube: {}\n")
    assert faults(path)[0].startswith(f"{path}:3: ")


def test_a_file_that_is_not_there_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    assert "can't be read" in faults(tmp_path / "missing.yaml")[0]


def test_tokens_may_not_travel_over_plain_http(tmp_path: Path) -> None:
    path = write(tmp_path, "server:\n  host: 0.0.0.0\napi:\n  auth: true\n")
    [fault] = faults(path)
    assert fault.startswith(f"{path}:4: api.auth: needs server.tls")


def test_plain_http_is_fine_without_tokens(tmp_path: Path) -> None:
    assert not load(write(tmp_path, "server: {host: 0.0.0.0}\napi: {auth: false}\n"), {}).api.auth


def test_a_keep_alive_at_or_below_the_schedulers_is_refused(tmp_path: Path) -> None:
    assert "greater than 90" in faults(write(tmp_path, "server: {keepAliveSeconds: 90}\n"))[0]


def test_lease_times_out_of_order_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "leaderElection:\n  retryPeriodSeconds: 2\n  leaseDurationSeconds: 5\n")
    assert faults(path)[0].startswith(f"{path}:3: leaderElection.leaseDurationSeconds: ")


def test_settings_are_frozen() -> None:
    with pytest.raises(pydantic.ValidationError):
        Settings().server.port = 1  # type: ignore[misc]  # that it is refused is the point


def test_the_process_environment_is_not_read_behind_our_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_SERVER__PORT", "999")
    assert load(None, {}).server.port == 8080


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ("dcgm: {pattern: 'http://{nod}:9400/metrics'}", "must say {node} where the node's name belongs"),
        ("dcgm: {pattern: '{node}:9400/metrics'}", "must be an http or https URL"),
        ("dcgm: {targets: {a: 'http://a:9400', b: 'ftp://b'}}", "b must be an http or https URL"),
        ("prometheus: {url: 'prometheus:9090'}", "must be an http or https URL"),
        ("prometheus: {url: 'http://[::1'}", "must be an http or https URL"),
    ],
)
def test_an_address_that_nothing_could_be_read_from_is_a_fault(
    tmp_path: Path, setting: str, fault: str
) -> None:
    path = tmp_path / "berth.yaml"
    path.write_text(f"telemetry:\n  {setting}\n")
    with pytest.raises(SettingsError, match=re.escape(fault)) as caught:
        load(path, {})
    assert str(caught.value).startswith(f"{path}:2: telemetry.")


def test_every_setting_says_what_it_is() -> None:
    for model in (Settings, AgentSettings):
        assert [doc.key for doc in describe(model, PREFIX) if not doc.text] == []


@given(st.text(max_size=200))
def test_any_text_gives_settings_or_a_settings_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with contextlib.suppress(SettingsError):
        assert isinstance(load(path, {}), Settings)
