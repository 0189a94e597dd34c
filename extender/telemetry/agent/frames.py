"""The words between agent and reader: four bytes of length, then one MessagePack struct.

Never: processes, pipes or NVML.
"""

from __future__ import annotations

import struct
from typing import Annotated, BinaryIO, Final

import msgspec

from extender.api.telemetry import Device, DriverState

MAX_FRAME: Final = 4 << 20
_LENGTH: Final = struct.Struct(">I")
LENGTH_BYTES: Final = _LENGTH.size


class Ask(msgspec.Struct, frozen=True):
    """Read everything once; `processes` also lists processes, which is the dear part."""

    number: int
    processes: bool = False


class Answer(msgspec.Struct, frozen=True, tag=True):
    """What the reader saw. Devices carry no XIDs; `processes` of a device is unsupported unless asked for."""

    number: int
    driver_version: str
    nvml_version: str
    devices: tuple[Device, ...]
    event_error: int = 0  # the NVML code for which no XIDs are heard, 0 when they are


class Fault(msgspec.Struct, frozen=True, tag=True):
    """The driver as a whole is not to be used; the reader exits after this."""

    state: DriverState
    code: int
    operation: str


class Heard(msgspec.Struct, frozen=True, tag=True):
    """An event: an XID when `code` is not None, else a reason to read again at once."""

    uuid: str
    code: Annotated[int, msgspec.Meta(ge=0)] | None = None
    gpu_instance: int | None = None


Word = Answer | Fault | Heard


class FrameError(ValueError):
    """A frame that can't be: too long, cut off, or not one of our structs."""


def pack(word: msgspec.Struct) -> bytes:
    """One frame, length first."""
    body = msgspec.msgpack.encode(word)
    return _LENGTH.pack(len(body)) + body


def frame_length(prefix: bytes) -> int:
    """Length of the body behind a prefix. Raises FrameError past `MAX_FRAME`."""
    length: int = _LENGTH.unpack(prefix)[0]
    if length > MAX_FRAME:
        raise FrameError(f"a frame of {length} bytes, {MAX_FRAME} at most")
    return length


def read_body(stream: BinaryIO) -> bytes | None:
    """The next body from a blocking stream; None at its end. Raises FrameError for a cut frame."""
    prefix = stream.read(LENGTH_BYTES)
    if not prefix:
        return None
    if len(prefix) < LENGTH_BYTES:
        raise FrameError("a frame cut within its length")
    length = frame_length(prefix)
    body = stream.read(length)
    if len(body) < length:
        raise FrameError(f"a frame cut after {len(body)} of {length} bytes")
    return body
