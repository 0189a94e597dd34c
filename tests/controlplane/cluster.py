"""A real Kubernetes control plane on loopback, for tests.

Owns the credentials, start, restart and end of etcd, kube-apiserver, kube-controller-manager and any number
of kube-schedulers. There are no kubelets: a bound pod stays Pending, and the controllers that would act on
silent nodes are off. It knows nothing of Berth.

    with ControlPlane() as cluster:
        cluster.start_scheduler(config_text)
        admin = cluster.client()
"""

from __future__ import annotations

import base64
import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx
import yaml

from tests.controlplane import flags
from tests.controlplane.build import build_controlplane
from tests.controlplane.client import ApiClient
from tests.controlplane.flags import Layout, Options
from tests.controlplane.processes import Component, free_ports

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ADMIN = "admin"
CONTROLLER_MANAGER = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"

STOCK_SCHEDULER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""

_START_S = 60.0


class ControlPlane:
    """One control plane; a context manager that starts it and ends every process of it.

    Attributes:
        url: Base URL of the API server, the same over restarts.
        etcd_url: Base URL of etcd.
        authority: The PEM file that vouches for the API server's certificate.
        folder: Holds data, credentials and, as ``*.log``, the components' logs.
        components: The components by name (``etcd``, ``kube-apiserver``, ``kube-controller-manager`` and the
            schedulers by theirs), for tests that stop, freeze or inspect one.
        started_in: Seconds from the start to a ready control plane.
    """

    def __init__(
        self, options: Options | None = None, *, binary: Path | None = None, folder: Path | None = None
    ) -> None:
        """Prepare it, without starting anything.

        Args:
            options: How it differs from the default one.
            binary: The control plane's binary; built where not given.
            folder: An existing folder that is kept afterwards; a temporary one where not given.
        """
        self._options = options or Options()
        self._binary = binary or build_controlplane()
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="controlplane-"))
        self._layout = Layout(self.folder, *free_ports(4))
        self.url = self._layout.url
        self.etcd_url = self._layout.etcd_url
        self.authority = self._layout.authority
        self._groups = {
            ADMIN: ("system:masters",),
            CONTROLLER_MANAGER: (),
            SCHEDULER: (),
            **{user: tuple(groups) for user, groups in self._options.users.items()},
        }
        self._tokens = {user: secrets.token_urlsafe(24) for user in self._groups}
        self._clients: list[ApiClient] = []
        self._admin: ApiClient | None = None
        self.components: dict[str, Component] = {}
        self._metrics_ports: dict[str, int] = {}
        self.started_in = 0.0

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- life ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start etcd, kube-apiserver and kube-controller-manager and wait until all of them are ready.

        Raises:
            ComponentError: one ended or was not ready in time.
        """
        began = time.monotonic()
        self._write_credentials()
        etcd = self._component("etcd", flags.etcd(self._layout, self._options))
        etcd.start()
        etcd.wait_until(lambda: _answers(f"{self.etcd_url}/health"), _START_S)
        self._component("kube-apiserver", flags.apiserver(self._layout, self._options))
        self.start_apiserver()
        manager = self._component(
            "kube-controller-manager",
            flags.controller_manager(self._layout, self._options, self.kubeconfig(CONTROLLER_MANAGER)),
        )
        manager.start()
        admin = self.client()
        manager.wait_until(
            lambda: admin.find("v1", "ServiceAccount", "default", "default") is not None, _START_S
        )
        self.started_in = time.monotonic() - began

    def stop(self) -> None:
        """End every process, at once, and remove the folder unless it was given."""
        for client in self._clients:
            client.close()
        self._clients.clear()
        self._admin = None
        for component in reversed(self.components.values()):
            component.stop(abruptly=True)
        self.components.clear()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start_apiserver(self) -> None:
        """Start kube-apiserver (again), at the same address, and wait until it is ready.

        Raises:
            ComponentError: it ended or was not ready in time.
        """
        component = self.components["kube-apiserver"]
        component.start()
        component.wait_until(self.authority.exists, _START_S)
        component.wait_until(self.client().ready, _START_S)

    def stop_apiserver(self, *, abruptly: bool = False) -> None:
        """End kube-apiserver: told to (it closes its watches first), or ``abruptly`` as in a crash."""
        self.components["kube-apiserver"].stop(abruptly=abruptly)

    def restart_apiserver(self, *, abruptly: bool = False) -> None:
        """End kube-apiserver and start it again; what it serves is in etcd and stays."""
        self.stop_apiserver(abruptly=abruptly)
        self.start_apiserver()

    def start_scheduler(
        self,
        config: str = STOCK_SCHEDULER,
        *,
        name: str = "kube-scheduler",
        token: str | None = None,
        more_flags: Sequence[str] = (),
    ) -> Component:
        """Start a kube-scheduler and wait until its caches are synced.

        Args:
            config: A KubeSchedulerConfiguration as YAML text. Leader election is switched off and the
                kubeconfig filled in; everything else stays.
            name: Its name among the components, and of its log.
            token: Whom it acts as; by default the user that the API server's own RBAC knows as the scheduler.
            more_flags: Appended to its flags.

        Raises:
            ComponentError: it ended or was not ready in time.
            ValueError: one of that name runs already.
        """
        if name in self.components:
            raise ValueError(f"a component named {name!r} runs already")
        document = yaml.safe_load(config)
        connection = document.get("clientConnection") or {}
        document["clientConnection"] = {**connection, "kubeconfig": str(self.kubeconfig(SCHEDULER, token))}
        document["leaderElection"] = {"leaderElect": False}
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document))
        (port,) = free_ports(1)
        certificates = self.folder / f"{name}-certificates"
        component = self._component(
            name, [*flags.scheduler(path, certificates, port, self._options), *more_flags]
        )
        self._metrics_ports[name] = port
        try:
            component.start()
            component.wait_until(lambda: _answers(f"https://127.0.0.1:{port}/readyz"), _START_S)
        except BaseException:
            self.stop_scheduler(name)
            raise
        return component

    def stop_scheduler(self, name: str = "kube-scheduler", *, abruptly: bool = False) -> None:
        """End that kube-scheduler; none of that name is fine."""
        component = self.components.pop(name, None)
        if component is not None:
            component.stop(abruptly=abruptly)

    def scheduler_metrics(self, name: str = "kube-scheduler") -> str:
        """Return that kube-scheduler's metrics in the Prometheus text format."""
        url = f"https://127.0.0.1:{self._metrics_ports[name]}/metrics"
        return httpx.get(url, verify=False, timeout=10.0, trust_env=False).raise_for_status().text

    # --- identities ---------------------------------------------------------------------------------------

    def token(self, user: str = ADMIN) -> str:
        """Return the bearer token of a user.

        Raises:
            KeyError: there is no such user; Options.users names further ones.
        """
        return self._tokens[user]

    def client(self, token: str | None = None) -> ApiClient:
        """Return a client that acts as the token's owner, as the administrator where none is given.

        It is closed with the control plane.
        """
        if token is None and self._admin is not None:
            return self._admin
        client = ApiClient(self.url, token or self.token(), self.authority)
        self._clients.append(client)
        if token is None:
            self._admin = client
        return client

    def anonymous(self) -> ApiClient:
        """Return a client without credentials."""
        client = ApiClient(self.url, None, self.authority)
        self._clients.append(client)
        return client

    def kubeconfig(self, user: str = ADMIN, token: str | None = None) -> Path:
        """Return a kubeconfig file for a user of the control plane, or for whoever owns ``token``."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "tests",
                    "cluster": {"server": self.url, "certificate-authority": str(self.authority)},
                }
            ],
            "users": [{"name": "self", "user": {"token": token or self.token(user)}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "self"}}],
            "current-context": "tests",
        }
        path = self.folder / f"kubeconfig-{secrets.token_hex(4)}.yaml"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return path

    def service_account_token(
        self,
        namespace: str,
        name: str,
        *,
        audiences: Sequence[str] = (),
        expiration_seconds: int = 3600,
        pod: Mapping[str, Any] | None = None,
    ) -> str:
        """Return a token of a service account, from the TokenRequest API.

        Args:
            namespace: The service account's namespace.
            name: Its name.
            audiences: Whom the token is for; the API server itself where empty.
            expiration_seconds: How long it is valid, at least 600.
            pod: A pod as stored, that the token is bound to: the token then names the pod, and the pod's
                node if it is bound to one, as a projected token does.

        Raises:
            ApiError: refused; 404 where there is no such service account.
        """
        spec: dict[str, Any] = {"expirationSeconds": expiration_seconds}
        if audiences:
            spec["audiences"] = list(audiences)
        if pod is not None:
            meta = pod["metadata"]
            spec["boundObjectRef"] = {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": meta["name"],
                "uid": meta["uid"],
            }
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        token: str = self.client().request("POST", path, request)["status"]["token"]
        return token

    # --- contents -----------------------------------------------------------------------------------------

    def create_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> str:
        """Create a namespace and wait for its service account, without which it takes no pods.

        Returns:
            Its name.
        """
        admin = self.client()
        admin.create(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": dict(labels or {})},
            }
        )
        # The controller that makes it needs seconds to come back after the API server was away.
        admin.wait("v1", "ServiceAccount", "default", lambda _: True, name, seconds=60)
        return name

    def compact(self) -> int:
        """Drop etcd's history up to now, as the API server does every five minutes.

        Watches that start later from an older version end with 410, where the API server's own watch cache
        does not reach back so far: see `expire_history`.

        Returns:
            The revision that is the oldest one from now on.
        """
        self._bump()  # a watch goes on at the version after its own, so that one must be gone too
        revision = self._bump()
        self._etcd("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    def expire_history(self) -> None:
        """Restart the API server so that each watch, taken up again where it was, is answered 410.

        While it is down the revision is raised and everything before it compacted; the new server's watch
        cache begins there.
        """
        self.stop_apiserver()
        self.compact()
        self.start_apiserver()

    def _bump(self) -> int:
        key = base64.b64encode(b"/berth-tests/revision").decode()
        answer = self._etcd("/v3/kv/put", {"key": key, "value": base64.b64encode(b"x").decode()})
        return int(answer["header"]["revision"])

    def _etcd(self, path: str, body: Mapping[str, Any]) -> Any:
        answer = httpx.post(self.etcd_url + path, json=body, timeout=10.0, trust_env=False)
        return answer.raise_for_status().json()

    def _component(self, name: str, arguments: Sequence[str]) -> Component:
        component = Component(self._binary, name, arguments, self.folder / f"{name}.log")
        self.components[name] = component
        return component

    def _write_credentials(self) -> None:
        key = subprocess.run(
            [str(self._binary), "service-account-key"], capture_output=True, timeout=30, check=True
        )
        rows = [
            f'{self._tokens[user]},{user},{user},"{",".join(groups)}"'
            for user, groups in self._groups.items()
        ]
        for path, text in (
            (self._layout.account_key, key.stdout.decode()),
            (self._layout.tokens, "\n".join(rows) + "\n"),
        ):
            path.touch(mode=0o600)
            path.write_text(text)


def _answers(url: str) -> bool:
    """Whether a probe of a component on loopback is answered 200 (its certificate is self-made)."""
    try:
        return httpx.get(url, verify=False, timeout=5.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
