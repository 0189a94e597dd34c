"""Does what a Dockerfile says, in a folder instead of an image: no image can be built where the tests run.

Owns reading the few instructions that ours uses, and their meaning in the folder. A first stage and the stage
that copies from it share one tree, so an absolute path means the same in both. An instruction that it does
not know is an error, never passed over.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

_LONGEST_STEP_S = 600


@dataclass(slots=True)
class Image:
    """What the steps have made: the folder that stands for `/`, and how a container of it would start."""

    root: Path
    workdir: Path = Path("/")
    user: str = ""
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    def inside(self, path: str) -> Path:
        """Where a path of the image is in the folder; relative ones are below the working directory."""
        return self.root / str(self.workdir / path).lstrip("/")


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions with their arguments, continuation lines joined, comments left out."""
    joined = re.sub(r"\\\n", " ", text)
    lines = (line.strip() for line in joined.splitlines())
    found = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
    return [(word.upper(), rest) for word, rest in found]


def carry_out(dockerfile: Path, context: Path, root: Path, python: str) -> Image:
    """Carry every instruction out below ``root``, with ``python`` as the image's own.

    Raises:
        ValueError: an instruction, or a form of it, that is not known here.
        subprocess.CalledProcessError: a RUN failed; its notes carry the output.
    """
    image = Image(root)
    programs = root / "usr" / "local" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(python)
    for word, rest in instructions(dockerfile.read_text()):
        match word:
            case "FROM":
                image = Image(root, environment={"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(root)})
            case "ENV":
                for pair in rest.split():
                    name, value = pair.split("=", 1)
                    image.environment[name] = _expand(_placed(value, root), image.environment)
            case "WORKDIR":
                image.workdir = image.workdir / rest
                image.inside(".").mkdir(parents=True, exist_ok=True)
            case "COPY":
                _copy(image, context, rest)
            case "RUN":
                _run(image, rest)
            case "USER":
                image.user = rest
            case "ENTRYPOINT":
                image.entrypoint = json.loads(rest)
            case "CMD":
                image.command = json.loads(rest)
            case "EXPOSE":
                int(rest)
            case _:
                raise ValueError(f"{word} is not known here")
    return image


def _placed(text: str, root: Path) -> str:
    """The text with each absolute path of the image put below the root."""
    return re.sub(r"(?<![\w/.}])/(opt|src|srv|etc|tmp)\b", lambda hit: f"{root}{hit[0]}", text)


def _expand(text: str, environment: dict[str, str]) -> str:
    return re.sub(r"\$(\w+)", lambda hit: environment.get(hit[1], ""), text)


def _copy(image: Image, context: Path, rest: str) -> None:
    *sources, target = rest.split()
    if sources[0].startswith("--from="):
        if sources[1:] != [target]:
            raise ValueError(f"COPY {rest}: a copy between stages keeps its path here")
        if not image.inside(target).exists():
            raise ValueError(f"COPY {rest}: the stage has not made it")
        return
    for source in sources:
        origin = context / source
        into = image.inside(target)
        if origin.is_dir():
            shutil.copytree(origin, into, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        else:
            into.mkdir(parents=True, exist_ok=True)
            shutil.copy(origin, into)


def _run(image: Image, command: str) -> None:
    network = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    # pip's own settings of this machine (where packages come from) stay: an image builder has its own.
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    done = subprocess.run(
        ["/bin/sh", "-ec", _placed(command, image.root)],
        cwd=image.inside("."),
        env={**network, **pip, **image.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LONGEST_STEP_S,
        check=False,
    )
    if done.returncode != 0:
        fault = subprocess.CalledProcessError(done.returncode, command)
        fault.add_note(done.stdout[-4000:])
        raise fault
