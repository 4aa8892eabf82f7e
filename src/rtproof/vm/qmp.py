# SPDX-License-Identifier: Apache-2.0
"""Talk to QEMU's monitor (QMP: docs/interop/qmp-spec in QEMU's sources) over a socket that it inherits."""

import json
import socket
import time
from typing import Any

from rtproof.errors import TargetError


class Monitor:
    """One QEMU's monitor. Events are kept until they are waited for. ``closed``: QEMU has ended or is about to."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._rest = b""
        self._events: list[str] = []
        self._greeted = False
        self.closed = False

    def command(self, name: str, timeout_s: float = 60, **arguments: Any) -> Any:
        """Do something and give its answer. TargetError if QEMU refuses, ends or does not answer."""
        if not self._greeted:
            self._greeted = True
            self.command("qmp_capabilities", timeout_s)
        request = {"execute": name, "arguments": arguments}
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise TargetError(f"QEMU ended before it could be told to {name}") from error
        while True:
            try:
                message = self._message(timeout_s)
            except TimeoutError as error:
                raise TargetError(f"QEMU does not answer to {name} within {timeout_s:g} s") from error
            if "return" in message:
                return message["return"]
            if "error" in message:
                raise TargetError(f"QEMU refuses to {name}: {message['error'].get('desc', message)}")
            self._events.append(message.get("event", ""))

    def happened(self, event: str, timeout_s: float) -> bool:
        """Whether an event has come or comes within that time, before QEMU ends."""
        end = time.monotonic() + timeout_s
        while event not in self._events:
            try:
                self._events.append(self._message(end - time.monotonic()).get("event", ""))
            except (TimeoutError, TargetError):
                return False
        self._events.remove(event)
        return True

    def _message(self, timeout_s: float) -> dict[str, Any]:
        end = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            self._rest += self._receive()
        line, self._rest = self._rest.split(b"\n", 1)
        return dict(json.loads(line))

    def _receive(self) -> bytes:
        try:
            received = self._socket.recv(65536)
        except ConnectionError:
            received = b""
        if not received:
            self.closed = True
            raise TargetError("QEMU ended unexpectedly")
        return received
