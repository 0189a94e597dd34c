"""One reader process as its parent sees it: started, asked, watched, killed, reaped without ever waiting.

The parent must stay killable itself: it polls with WNOHANG, and its pipes are read by the event loop.
Never: decides when to kill (that is `poller`).
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from extender.telemetry.agent.frames import (
    LENGTH_BYTES,
    Answer,
    Ask,
    Fault,
    FrameError,
    Heard,
    Word,
    frame_length,
    pack,
)
from extender.telemetry.agent.progress import Progress

_POLL_S: Final = 0.02


def send_signal(pid: int, number: int) -> None:
    """os.kill for a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


@dataclass(frozen=True, slots=True)
class Launch:
    """How a reader is started. `environment` is added to ours; `signal_process` may be replaced by a test."""

    event_wait_milliseconds: int
    sysfs: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    signal_process: Callable[[int, int], None] = send_signal

    def command(self, progress: int) -> list[str]:
        """The reader's command line."""
        module = "extender.telemetry.agent.reader"
        return [
            sys.executable,
            "-m",
            module,
            str(progress),
            str(self.event_wait_milliseconds),
            str(self.sysfs),
        ]


class ReaderGone(Exception):  # noqa: N818 - says what happened, not what is wrong
    """The reader ended, or spoke nonsense, instead of answering."""


class ReaderProcess:
    """A started reader. Asked one question at a time."""

    def __init__(self, launch: Launch, hear: Callable[[Heard], None]) -> None:
        self._launch = launch
        self._hear = hear
        descriptor = Progress.create()
        self._progress = Progress(descriptor)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own module, no shell
                launch.command(descriptor),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[descriptor],
                env={**os.environ, **launch.environment},
                start_new_session=True,  # a Ctrl-C at the agent's terminal is not for the reader
            )
        finally:
            os.close(descriptor)
        self._words: asyncio.Queue[Answer | Fault | ReaderGone] = asyncio.Queue()
        self._pump = asyncio.get_running_loop().create_task(self._read_words())
        self._asked = 0

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def operation(self) -> str:
        """The NVML call that the reader is in; empty when it is in none."""
        return self._progress.current()

    async def ask(self, *, processes: bool) -> Answer | Fault:
        """One reading. Raises ReaderGone; has no deadline of its own."""
        self._asked += 1
        frame = pack(Ask(self._asked, processes))
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(frame)  # 20 bytes: a pipe whose reader has answered has room
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # it is going; its last word may be in the other pipe
        while True:
            word = await self._words.get()
            if isinstance(word, ReaderGone):
                self._words.put_nowait(word)
                raise word
            if isinstance(word, Fault) or word.number == self._asked:
                return word

    def gone(self) -> bool:
        """True once the process has ended and is reaped. Never waits."""
        return self._process.poll() is not None

    def exit_status(self) -> int | None:
        """As subprocess has it: negative for a signal, None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """SIGKILL. For a reader that hangs; a healthy one is asked to `end()`."""
        self._launch.signal_process(self.pid, signal.SIGKILL)

    async def gone_within(self, seconds: float) -> bool:
        """Wait for the end, at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.gone():  # noqa: ASYNC110 - only WNOHANG can't hang with the process
                    await asyncio.sleep(_POLL_S)
        return self.gone()

    async def end(self, grace_s: float) -> bool:
        """Ask it to shut the library down and go; True when it did within the grace."""
        self._close_stdin()
        return await self.gone_within(grace_s)

    async def release(self) -> None:
        """Let go of pipes and memory; of a stuck process too."""
        self._close_stdin()
        self._pump.cancel()
        with suppress(asyncio.CancelledError):
            await self._pump
        self._progress.close()

    def _close_stdin(self) -> None:
        with suppress(BrokenPipeError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    async def _read_words(self) -> None:
        stream = asyncio.StreamReader()
        assert self._process.stdout is not None
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), self._process.stdout
        )
        decoder = msgspec.msgpack.Decoder(Word)
        try:
            while True:
                prefix = await stream.readexactly(LENGTH_BYTES)
                word = decoder.decode(await stream.readexactly(frame_length(prefix)))
                if isinstance(word, Heard):
                    self._hear(word)
                else:
                    self._words.put_nowait(word)
        except (asyncio.IncompleteReadError, msgspec.DecodeError, FrameError) as fault:
            gone = ReaderGone(
                "the reader ended" if isinstance(fault, asyncio.IncompleteReadError) else str(fault)
            )
            self._words.put_nowait(gone)
        finally:
            transport.close()
