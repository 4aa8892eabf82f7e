# SPDX-License-Identifier: Apache-2.0
"""The wires between two guests: joins their second serial ports, and delays or drops edges of the generator.

A byte is an edge of a line. ``Relay`` counts the generator's edges from 1.
"""

import heapq
import selectors
import socket
import threading
import time
from collections.abc import Collection
from pathlib import Path


class Relay:
    """Two listening sockets, ``generator`` and ``responder``, of which each takes one guest. Ends with the context."""

    def __init__(
        self, folder: Path, delayed: Collection[int] = (), delay_s: float = 0.0, dropped: Collection[int] = ()
    ) -> None:
        self.generator, self.responder = folder / "g.sock", folder / "r.sock"
        self.given = self.answers = 0
        self.forwarded: list[int] = []
        """Numbers of the edges that went on to the responder."""
        self.waited_s: dict[int, float] = {}
        """Of each answered edge, by its number: the time from its arrival here until its answer went back."""
        self._arrived_s: dict[int, float] = {}
        self._delayed, self._delay_s, self._dropped = delayed, delay_s, dropped
        self._listeners = [self._listen(self.generator), self._listen(self.responder)]
        self._peers: dict[int, socket.socket] = {}
        self._waiting: list[tuple[float, int, bytes]] = []
        self._stop, self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _listen(self, path: Path) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(1)
        return listener

    def __enter__(self) -> "Relay":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._wake.send(b"x")
        self._thread.join(10)
        for each in (*self._listeners, *self._peers.values(), self._stop, self._wake):
            each.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._stop, selectors.EVENT_READ)
            for side, listener in enumerate(self._listeners):
                selector.register(listener, selectors.EVENT_READ, ("listener", side))
            while True:
                for key, _ in selector.select(self._until_next()):
                    if key.data is None:
                        return
                    self._take(selector, key.fileobj, *key.data)
                while self._waiting and self._waiting[0][0] <= time.monotonic():
                    _, number, byte = heapq.heappop(self._waiting)
                    self._forward(number, byte)

    def _until_next(self) -> float | None:
        return max(self._waiting[0][0] - time.monotonic(), 0) if self._waiting else None

    def _take(self, selector: selectors.BaseSelector, file: object, kind: str, side: int) -> None:
        assert isinstance(file, socket.socket)
        if kind == "listener":
            self._peers[side], _ = file.accept()
            selector.register(self._peers[side], selectors.EVENT_READ, ("peer", side))
            return
        try:
            content = file.recv(4096)
        except ConnectionError:
            content = b""
        if not content:
            selector.unregister(file)
        for byte in content:
            self._pass_on(side, bytes([byte]))

    def _pass_on(self, side: int, byte: bytes) -> None:
        if side == 1:
            self.answers += 1
            if self.forwarded:
                self.waited_s.setdefault(self.forwarded[-1], time.monotonic() - self._arrived_s[self.forwarded[-1]])
            self._send(0, byte)
            return
        self.given += 1
        self._arrived_s[self.given] = time.monotonic()
        if self.given in self._dropped:
            return
        if self.given in self._delayed:
            heapq.heappush(self._waiting, (time.monotonic() + self._delay_s, self.given, byte))
        else:
            self._forward(self.given, byte)

    def _forward(self, number: int, byte: bytes) -> None:
        self.forwarded.append(number)
        self._send(1, byte)

    def _send(self, side: int, byte: bytes) -> None:
        peer = self._peers.get(side)
        try:
            if peer:
                peer.sendall(byte)
        except OSError:
            pass
