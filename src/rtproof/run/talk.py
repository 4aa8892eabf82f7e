# SPDX-License-Identifier: Apache-2.0
"""What the agent says on standard error: progress for the view, sentences for the user and a log in the run folder."""

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from rtproof.run.live import LiveView, Progress, parse_progress
from rtproof.run.watching import Watcher, parse_over

VOICE = "rtproof-agent: "
LARGEST_LOG = 1 << 20
"""Characters that are kept; an agent that says more is broken, and must fill neither the disk nor the screen."""


def printable(line: str) -> str:
    """The line without control characters, so that no target can send escape codes to the terminal."""
    return "".join(character if character.isprintable() else "\ufffd" for character in line.expandtabs())


class Listener:
    """Takes the agent's lines. The newest sentence waits for the next line: the last may say why the run failed.

    watcher, stop: who is told of the progress too, and what is done once when he says that the run may end.
    """

    def __init__(
        self, view: LiveView, log_path: Path, watcher: Watcher | None = None, stop: Callable[[], None] = lambda: None
    ) -> None:
        self._view = view
        self._watcher = watcher
        self._stop = stop
        self._log_path = log_path
        self._room = LARGEST_LOG
        self._waiting = ""
        self.last = ""
        self.stopped = False

    def listen(self, lines: Iterable[str]) -> None:
        """Take every line until there are no more."""
        for line in lines:
            self._show_waiting()
            if (progress := parse_progress(line)) is not None:
                self._view.feed(progress)
                self._watch(progress)
            elif (over := parse_over(line)) is not None:
                if self._watcher:
                    self._watcher.over(over.thread, over.limit_ns, over.second, over.worst_ns)
            else:
                self._take(printable(line))

    def _watch(self, progress: Progress) -> None:
        told = progress.thread, progress.due_ns, progress.lost, progress.time_ns
        if self._watcher and self._watcher.progress(*told):
            if not self.stopped:
                self._stop()
            self.stopped = True

    def finish(self, failed: bool) -> None:
        """Draw for the last time. The last sentence of a run that failed is left to whoever tells the user of that."""
        if not failed:
            self._show_waiting()
        self._view.draw()

    def _take(self, text: str) -> None:
        if text.startswith(VOICE):
            self.last = text.removeprefix(VOICE)
        self._room -= len(text) + 1
        if self._room >= 0:
            self._waiting = text
            self._log(text)

    def _log(self, text: str) -> None:
        """A full disk must not end the run; the agent deals with that."""
        with contextlib.suppress(OSError), self._log_path.open("a", encoding="utf-8") as log:
            log.write(text + "\n")

    def _show_waiting(self) -> None:
        if self._waiting:
            self._view.say(self._waiting)
        self._waiting = ""
