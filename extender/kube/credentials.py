"""Where the API server is and how we prove who we are, by the official client's config loaders.

Owns: loading kubeconfig or the in-cluster files, keeping tokens fresh, and the rule that no token goes over
plain HTTP. Never: logs a token or puts one into an error text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from kubernetes.aio import config as kube_config
from kubernetes.aio.client import Configuration

from extender.model.addresses import is_loopback
from extender.model.errors import KubeError

_loaders: Any = kube_config  # the library's loaders carry no annotations

REFRESH_SECONDS = 60.0
"""How old a token may be before its file or exec plugin is asked again (the plugin's own expiry counts)."""


def plain_http_leaves_machine(url: str) -> bool:
    """Whether requests to `url` would travel unencrypted over a network."""
    parts = urlsplit(url)
    return parts.scheme != "https" and not is_loopback(parts.hostname or "")


async def load(
    clock: Callable[[], float], kubeconfig: str | None = None, context: str | None = None
) -> Configuration:
    """The client configuration from a kubeconfig file, or from the pod's own files when there is none named.

    Args:
        clock: monotonic seconds, for the age of a token.
        kubeconfig: path of the file; None = in-cluster.
        context: context of the file; None = its current one.

    Raises:
        KubeError: the files can't be used, or would send a token over plain HTTP.
    """
    configuration = Configuration()
    try:
        if kubeconfig is None:
            _loaders.load_incluster_config(client_configuration=configuration)
        else:
            loader = await _loaders.load_kube_config(
                config_file=kubeconfig,
                context=context,
                client_configuration=configuration,
                persist_config=False,
            )
            _keep_fresh(configuration, loader.load_and_set, clock)
    except Exception as error:
        # The loaders raise ConfigException, OSError, YAMLError, KeyError, TypeError on a broken file.
        where = kubeconfig or "the in-cluster service account"
        raise KubeError(f"no usable credentials in {where}: {type(error).__name__}") from error
    if urlsplit(configuration.host).scheme != "https":
        # A proxy from the environment must not see what is meant for this machine.
        configuration.client_session_kwargs = {"trust_env": False}
    await authorization(configuration)
    return configuration


def _keep_fresh(
    configuration: Any, reload: Callable[[Configuration], Awaitable[None]], clock: Callable[[], float]
) -> None:
    """Ask the kubeconfig loader again now and then: it re-reads token files and re-runs expired plugins.

    (The in-cluster loader brings its own hook, with the same period.)
    """
    due = clock() + REFRESH_SECONDS

    async def refresh(current: Configuration) -> None:
        nonlocal due
        if clock() < due:
            return
        due = clock() + REFRESH_SECONDS
        fresh = Configuration()
        await reload(fresh)
        current.api_key = fresh.api_key

    configuration.refresh_api_key_hook = refresh


async def authorization(configuration: Configuration) -> str | None:
    """The Authorization header for the next request, refreshed when due; None without a token.

    Raises:
        KubeError: there is a token, and the server is spoken to over plain HTTP on a network.
    """
    try:
        value = await configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    except Exception as error:
        raise KubeError(f"the API token can't be refreshed: {type(error).__name__}") from error
    if not value:
        return None
    if plain_http_leaves_machine(configuration.host):
        raise KubeError(f"refused to send a token over plain HTTP to {configuration.host}")
    return value.strip()
