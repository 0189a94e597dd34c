"""TLS by files: they are followed when they change, and `/extender` asks for a client certificate."""

from __future__ import annotations

import os
import shutil
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from extender.model.errors import SettingsError
from extender.server.certificates import Certificates
from extender.settings import ServerSettings, TlsSettings
from tests.server.conftest import make_app
from tests.server.running import CERTS, running


@dataclass
class Folder:
    """Certificate files that a test changes; each change gets a later time than the one before."""

    path: Path
    changes: int = field(default=0)

    def put(self, source: str, name: str) -> None:
        self.changes += 1
        shutil.copyfile(CERTS / source, self.path / name)
        os.utime(self.path / name, (self.changes, self.changes))

    def serve_as(self, name: str) -> None:
        self.put(f"{name}.crt", "tls.crt")
        self.put(f"{name}.key", "tls.key")

    def settings(self, *, client_ca: bool = False) -> TlsSettings:
        return TlsSettings(
            cert_file=self.path / "tls.crt",
            key_file=self.path / "tls.key",
            client_ca_file=self.path / "ca.crt" if client_ca else None,
            reload_seconds=0.05,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.serve_as("server-a")
    made.put("ca.crt", "ca.crt")
    return made


def trust(client: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(CERTS / "ca.crt"))
    if client is not None:
        context.load_cert_chain(CERTS / f"{client}.crt", CERTS / f"{client}.key")
    return context


def serial(name: str) -> str:
    decoded = ssl._ssl._test_decode_cert(str(CERTS / f"{name}.crt"))  # type: ignore[attr-defined]  # no public name
    return str(decoded["serialNumber"])


def presented(url: str) -> str:
    """The serial number of the certificate that a new connection is shown."""
    with (
        httpx.Client(verify=trust(), trust_env=False) as client,
        client.stream("GET", f"{url}/livez") as answer,
    ):
        tls = answer.extensions["network_stream"].get_extra_info("ssl_object")
        return str(tls.getpeercert()["serialNumber"])


def post(url: str, client: str | None, path: str = "/extender/filter") -> httpx.Response:
    return httpx.post(f"{url}{path}", content=b"xyz", verify=trust(client), trust_env=False)


@pytest.fixture
def mutual(folder: Folder) -> Iterator[str]:
    settings = ServerSettings(port=0, tls=folder.settings(client_ca=True))
    with running(make_app(client_certificates=True), settings) as server:
        yield server.url


def test_a_changed_certificate_is_shown_to_new_connections(folder: Folder) -> None:
    with running(make_app(), ServerSettings(port=0, tls=folder.settings())) as server:
        assert presented(server.url) == serial("server-a")
        folder.serve_as("server-b")
        shown = next(found for _ in range(1000) if (found := presented(server.url)) != serial("server-a"))
        assert shown == serial("server-b")


def test_an_open_connection_survives_a_change(folder: Folder) -> None:
    with (
        running(make_app(), ServerSettings(port=0, tls=folder.settings())) as server,
        httpx.Client(base_url=server.url, verify=trust(), trust_env=False) as client,
    ):
        assert client.get("/livez").status_code == 200
        folder.serve_as("server-b")
        assert any(presented(server.url) == serial("server-b") for _ in range(1000))
        assert client.get("/livez").status_code == 200


def test_files_that_did_not_change_are_not_loaded_again(folder: Folder) -> None:
    certificates = Certificates(folder.settings())
    assert not certificates.refresh()


def test_a_half_written_change_keeps_the_old_files_until_it_is_whole(folder: Folder) -> None:
    certificates = Certificates(folder.settings())
    folder.put("server-b.crt", "tls.crt")
    assert not certificates.refresh()
    folder.put("server-b.key", "tls.key")
    assert certificates.refresh()


def test_a_vanished_file_keeps_the_old_one(folder: Folder) -> None:
    certificates = Certificates(folder.settings())
    (folder.path / "tls.key").unlink()
    assert not certificates.refresh()


def test_a_symlink_that_points_elsewhere_is_a_change(tmp_path: Path) -> None:
    for name, source in (("..1", "server-a"), ("..2", "server-b")):
        folder = Folder(tmp_path / name)
        folder.path.mkdir()
        folder.serve_as(source)
    (tmp_path / "data").symlink_to("..1")
    certificates = Certificates(Folder(tmp_path / "data").settings())
    (tmp_path / "new").symlink_to("..2")
    (tmp_path / "new").rename(tmp_path / "data")
    assert certificates.refresh()


@pytest.mark.parametrize("name", ["tls.crt", "tls.key", "ca.crt"])
@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_files_that_cannot_be_used_at_the_start_are_named(
    folder: Folder, name: str, content: bytes | None
) -> None:
    (folder.path / name).unlink()
    if content is not None:
        (folder.path / name).write_bytes(content)
    with pytest.raises(SettingsError, match=rf"server\.tls\.\w+ .*{name}"):
        Certificates(folder.settings(client_ca=True))


def test_a_client_with_a_certificate_of_the_ca_reaches_the_verbs(mutual: str) -> None:
    assert post(mutual, "client").text == "3"


def test_a_client_without_a_certificate_does_not(mutual: str) -> None:
    answer = post(mutual, None)
    assert (answer.status_code, answer.json()) == (403, {"error": "a client certificate is required"})


@pytest.mark.parametrize("path", ["/extender", "/extender/", "/extender/anything", "/extender%2Ffilter"])
def test_nothing_below_the_prefix_is_open(mutual: str, path: str) -> None:
    assert post(mutual, None, path).status_code == 403


def test_a_client_with_a_foreign_certificate_is_turned_away(mutual: str) -> None:
    with pytest.raises(httpx.TransportError):
        post(mutual, "other-client")


def test_probes_need_no_certificate(mutual: str) -> None:
    assert httpx.get(f"{mutual}/readyz", verify=trust(), trust_env=False).status_code == 200


def test_every_request_of_a_kept_alive_connection_is_known(mutual: str) -> None:
    with httpx.Client(base_url=mutual, verify=trust("client"), trust_env=False) as client:
        assert [client.post("/extender/filter", content=b"x").text for _ in range(3)] == ["1"] * 3


def test_a_changed_ca_decides_about_new_connections(mutual: str, folder: Folder) -> None:
    assert post(mutual, "client").status_code == 200
    folder.put("other-ca.crt", "ca.crt")

    def welcome(name: str) -> bool:
        try:
            return post(mutual, name).status_code == 200
        except httpx.TransportError:
            return False

    assert any(welcome("other-client") for _ in range(1000))
    assert not welcome("client")
