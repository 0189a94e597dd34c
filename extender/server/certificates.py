"""TLS by files: contexts that follow their files, and routes that ask for a client certificate.

A client certificate is optional in the handshake, since probes and people have none; `/extender` insists.
Never: a private key in a log.
"""

from __future__ import annotations

import asyncio
import ssl
from http import HTTPStatus
from pathlib import Path

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from extender.model.errors import SettingsError
from extender.server.faults import failure
from extender.settings import TlsSettings

CLIENT_CERTIFICATE = "client_certificate"
"""Key of the ASGI scope's state: the verified certificate of the client, empty without one."""

_State = tuple[tuple[int, int, int], ...]


class Certificates:
    """A server context which is made anew when its files change.

    `context` stays the same object for the listener; it hands every new connection over to the newest one.

    Raises:
        SettingsError: The files can't be used at the start. Later that is logged, and the old ones stay.
    """

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._state = self._look()
        self._newest = _load(settings)
        self.context = _load(settings)
        self.context.sni_callback = self._hand_over
        self._log = structlog.get_logger(__name__)

    async def watch(self) -> None:
        """Look at the files every so often, until cancelled."""
        while True:
            await asyncio.sleep(self._settings.reload_seconds)
            self.refresh()

    def refresh(self) -> bool:
        """Load the files again if they have changed; says whether new ones are in use."""
        state = self._look()
        if state == self._state:
            return False
        try:
            self._newest = _load(self._settings)
        except SettingsError as error:
            self._log.warning("certificates were not reloaded", error=str(error))
            return False
        self._state = state
        self._log.info("certificates reloaded", file=str(self._settings.cert_file))
        return True

    def _hand_over(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._newest

    def _look(self) -> _State:
        return tuple(_stamp(path) for path in _files(self._settings))


class CertificateProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which also tells the app the verified certificate of the client."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the base does
        """Keep the peer's certificate with what is copied into every scope of this connection."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, CLIENT_CERTIFICATE: transport.get_extra_info("peercert")}


class ClientCertificates:
    """ASGI middleware: paths below `prefix` are answered with 403 without a client certificate."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through or refuse it, unread."""
        known = bool(scope.get("state", {}).get(CLIENT_CERTIFICATE))
        if scope["type"] == "http" and self._guarded(scope["path"]) and not known:
            answer = failure(HTTPStatus.FORBIDDEN, "a client certificate is required")
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _guarded(self, path: str) -> bool:
        return path == self._prefix or path.startswith(f"{self._prefix}/")


def _files(settings: TlsSettings) -> list[Path]:
    files = [settings.cert_file, settings.key_file]
    return files if settings.client_ca_file is None else [*files, settings.client_ca_file]


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _load(settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # A resumed session would skip the check of the client's certificate against a changed CA.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    try:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"server.tls.certFile {settings.cert_file}, keyFile {settings.key_file}: {error}"
        ) from error
    if settings.client_ca_file is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(settings.client_ca_file)
        except (OSError, ValueError) as error:
            raise SettingsError(f"server.tls.clientCaFile {settings.client_ca_file}: {error}") from error
    return context
