"""`berth fleet`, `berth explain`, `berth decisions`: what a desk shows, of a service, folder or cluster.

Never: a write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from extender.cli.doors import Doors
from extender.cli.remote import RemoteDesk
from extender.cli.tables import decisions_table, explain_table, fleet_table
from extender.model.document import DocumentError, read_documents
from extender.model.errors import BerthError
from extender.server import models
from extender.settings import load
from extender.verbs.ports import ReadDesk
from extender.verbs.views import ExplainView, FleetView

PAGE = 100
DEFAULT_URL = "http://127.0.0.1:8080"

Url = Annotated[str, typer.Option(envvar="BERTH_URL", help="Base URL of a running Berth.")]
TokenFile = Annotated[Path | None, typer.Option(help="File with a bearer token for the API.")]
CaFile = Annotated[Path | None, typer.Option(help="CA of the service's certificate.")]
From = Annotated[Path | None, typer.Option("--from", help="Kubernetes YAML instead of a running Berth.")]
Cluster = Annotated[bool, typer.Option("--cluster", help="The cluster itself instead of a running Berth.")]
Config = Annotated[Path | None, typer.Option(help="Settings file, for --cluster.")]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


class UsageError(BerthError):
    """The command was asked for something that does not go together."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where to look: exactly one of a service, a folder and the cluster."""

    url: str
    token_file: Path | None
    ca_file: Path | None
    folder: Path | None = None
    cluster: bool = False
    config: Path | None = None


@contextmanager
def open_desk(doors: Doors, source: Source) -> Iterator[ReadDesk]:
    """The desk that a command was pointed to."""
    if source.folder is not None and source.cluster:
        raise UsageError("--from and --cluster exclude each other")
    if source.folder is not None:
        if doors.desk_of_folder is None:
            raise UsageError("--from is not available here")
        with doors.desk_of_folder(source.folder) as desk:
            yield desk
    elif source.cluster:
        if doors.desk_of_cluster is None:
            raise UsageError("--cluster is not available here")
        with doors.desk_of_cluster(load(source.config, doors.environ)) as desk:
            yield desk
    else:
        remote = RemoteDesk(source.url, _token(source.token_file), source.ca_file)
        try:
            yield remote
        finally:
            remote.close()


def add_reading_commands(app: typer.Typer, doors: Doors) -> None:
    """Add the three commands."""

    @app.command()
    def fleet(
        url: Url = DEFAULT_URL,
        token_file: TokenFile = None,
        ca_file: CaFile = None,
        folder: From = None,
        config: Config = None,
        *,
        cluster: Cluster = False,
        as_json: Json = False,
    ) -> None:
        """Show nodes and their devices."""
        source = Source(url, token_file, ca_file, folder, cluster, config)
        with open_desk(doors, source) as desk:
            view = whole_fleet(desk)
        show(doors, models.Fleet.model_validate(view), fleet_table(view), as_json=as_json)

    @app.command()
    def explain(
        pod: Annotated[
            str, typer.Argument(help="NAME or NAMESPACE/NAME, or a YAML file.", show_default=False)
        ],
        *,
        node: Annotated[list[str] | None, typer.Option(help="A candidate; without it all nodes.")] = None,
        limit: Annotated[int, typer.Option(min=1, max=1000, help="How many nodes to show.")] = 20,
        url: Url = DEFAULT_URL,
        token_file: TokenFile = None,
        ca_file: CaFile = None,
        folder: From = None,
        config: Config = None,
        cluster: Cluster = False,
        as_json: Json = False,
    ) -> None:
        """Say what filter and prioritize would say to a pod, node by node, and why."""
        source = Source(url, token_file, ca_file, folder, cluster, config)
        with open_desk(doors, source) as desk:
            view = _explain(desk, pod, node or [], limit)
        show(doors, models.Explanation.model_validate(view), explain_table(view), as_json=as_json)

    @app.command()
    def decisions(
        pod: Annotated[str, typer.Option(help="UID, NAME or NAMESPACE/NAME.")] = "",
        limit: Annotated[int, typer.Option(min=1, max=1000, help="How many to show.")] = 50,
        url: Url = DEFAULT_URL,
        token_file: TokenFile = None,
        ca_file: CaFile = None,
        *,
        as_json: Json = False,
    ) -> None:
        """Show the newest decisions, and whether the predicted devices were granted."""
        with open_desk(doors, Source(url, token_file, ca_file)) as desk:
            found = desk.decisions(limit, pod)
        shown = models.Decisions(decisions=[models.Decision.model_validate(each) for each in found])
        show(doors, shown, decisions_table(found), as_json=as_json)


def whole_fleet(desk: ReadDesk) -> FleetView:
    """All pages as one; the totals are those of the last page."""
    page = desk.fleet("", PAGE)
    nodes = list(page.nodes)
    while page.next:
        page = desk.fleet(page.next, PAGE)
        nodes += page.nodes
    return replace(page, nodes=tuple(nodes))


def _explain(desk: ReadDesk, pod: str, nodes: list[str], limit: int) -> ExplainView:
    if Path(pod).suffix in (".yaml", ".yml", ".json"):
        return desk.explain(_document(Path(pod)), nodes, limit)
    namespace, slash, name = pod.partition("/")
    key = (namespace, name) if slash else ("default", pod)
    found = desk.explain_existing(*key, nodes, limit)
    if found is None:
        raise UsageError(f"pod {'/'.join(key)} is not known")
    return found


def _document(path: Path) -> dict[str, Any]:
    """The first Pod of a YAML file."""
    try:
        values = [document.value for document in read_documents(path.read_text(encoding="utf-8"))]
    except (OSError, UnicodeDecodeError, DocumentError) as error:
        raise UsageError(f"{path}: {error}") from error
    for value in values:
        if isinstance(value, dict) and value.get("kind", "Pod") == "Pod":
            return value
    raise UsageError(f"{path}: there is no Pod in it")


def _token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: can't be read: {error}") from error


def show(doors: Doors, shown: models.View, table: RenderableType, *, as_json: bool) -> None:
    """Print the JSON that the read API would answer, or the table."""
    if as_json:
        typer.echo(shown.model_dump_json())
    else:
        doors.console.print(table)
