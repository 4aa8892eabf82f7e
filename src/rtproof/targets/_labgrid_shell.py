# SPDX-License-Identifier: Apache-2.0
"""The way to a shell on a board behind a Target of labgrid: ssh, or a console. Not a target itself."""

import shlex
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from rtproof.boards.console import Console
from rtproof.boards.console_line import ConsoleLine, SocketLine, TtyLine
from rtproof.boards.console_shell import ConsoleShell
from rtproof.boards.labgrid_session import labgrid_fails, without_log
from rtproof.boards.shell import Shell
from rtproof.core.errors import LinkError, TargetError
from rtproof.core.printable import one_line
from rtproof.core.scratch import scratch_folder
from rtproof.targets import serial
from rtproof.targets.ssh import SshShell

TRY_AGAIN_S = 2
AS_LABGRID = ("-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR")
"""Boards get new keys with every system that is written to them, so labgrid compares none."""


@contextmanager
def shell_of(target: Any, options: dict[str, str], boot_s: float) -> Iterator[Shell]:
    """A shell by ssh if the target has a NetworkService, otherwise on its console. TargetError without either.

    boot_s: how long the board may take until ssh reaches it.
    """
    service = _resource(target, "NetworkService")
    with _by_ssh(target, service, options, boot_s) if service else _by_console(target, options) as shell:
        yield shell


def _resource(target: Any, *kinds: str) -> Any:
    """The resource of the first of these kinds that the target has, once it is there; None if it has none of them."""
    for kind in kinds:
        if any(type(resource).__name__ == kind for resource in target.resources):
            with labgrid_fails(kind):
                return target.get_resource(kind)
    return None


def _driver(target: Any, kind: str) -> Any:
    return next((driver for driver in target.drivers if type(driver).__name__ == kind), None)


@contextmanager
def _by_ssh(target: Any, service: Any, options: dict[str, str], boot_s: float) -> Iterator[Shell]:
    driver = _driver(target, "SSHDriver")
    with scratch_folder() as folder:
        where = {
            "host": service.address.partition("%")[0],
            "port": str(service.port),
            "user": options.get("user") or (driver and driver.username) or service.username,
        }
        password = driver.password if driver and driver.password is not None else service.password
        program = with_password(folder, password) if password else ("ssh",)
        more = (*AS_LABGRID, *_key_words(target, driver, options), *_proxy_words(service))
        more = (*(("-o", "BatchMode=no", "-o", "NumberOfPasswordPrompts=1") if password else ()), *more)
        shell = SshShell(where, folder / "s", program, more)
        _connect(shell, boot_s)
        try:
            yield shell
        finally:
            shell.close()


def with_password(folder: Path, password: str) -> tuple[str, ...]:
    """ssh, which asks a program for the password. No other user can read the program."""
    asked = folder / "password"
    asked.touch(mode=0o600)
    asked.write_text(f"#!/bin/sh\nprintf '%s\\n' {shlex.quote(password)}\n")
    asked.chmod(stat.S_IRWXU)
    return ("env", f"SSH_ASKPASS={asked}", "SSH_ASKPASS_REQUIRE=force", "ssh")


def _key_words(target: Any, driver: Any, options: dict[str, str]) -> tuple[str, ...]:
    if "key" in options:
        return ("-i", options["key"])
    if driver and driver.keyfile:
        return ("-i", target.env.config.resolve_path(driver.keyfile) if target.env else driver.keyfile)
    return ()


def _proxy_words(service: Any) -> tuple[str, ...]:
    """The way through the exporter's machine, if labgrid says that there is no other."""
    from labgrid.util.proxy import proxymanager

    address, _, device = service.address.partition("%")
    with labgrid_fails("the way through the exporter"):
        command = proxymanager.get_command(service, address, service.port, device or None)
    return ("-o", f"ProxyCommand={shlex.join(command)}") if command else ()


def _connect(shell: SshShell, boot_s: float) -> None:
    """Connect, again and again while the board may be booting."""
    end = time.monotonic() + boot_s
    while True:
        try:
            shell.first_connection()
        except LinkError:
            if time.monotonic() > end:
                raise
            time.sleep(TRY_AGAIN_S)
        else:
            return


@contextmanager
def _by_console(target: Any, options: dict[str, str]) -> Iterator[Shell]:
    """A shell on the console: of the port itself if it is free or can be freed, otherwise through labgrid's driver."""
    shell_driver = _driver(target, "ShellDriver")
    user = options.get("user") or (shell_driver.username if shell_driver else "")
    password = serial.password_of(options) or (shell_driver.password if shell_driver else "") or ""
    who = user, password
    name = f"the console of {target.name}"
    with (
        _console_line(target) as open_line,
        closing(Console(open_line)) as console,
        closing(ConsoleShell(console, who, name)) as shell,
    ):
        yield shell


@contextmanager
def _console_line(target: Any) -> Iterator[Callable[[], ConsoleLine]]:
    """What opens the console's line, as often as it is gone."""
    from labgrid.protocol import ConsoleProtocol

    port = _resource(target, "NetworkSerialPort", "RawSerialPort", "USBSerialPort")
    consoles = [driver for driver in target.drivers if isinstance(driver, ConsoleProtocol)]
    if not port and not consoles:
        raise TargetError(f"labgrid has neither a NetworkService nor a console for {target.name}")
    # A driver that is the console itself stays on: QEMU's would end the guest.
    with _silenced(target, consoles if port else [user for console in consoles for user in console.clients]):
        if port:
            yield lambda: _port_line(port)
        else:
            with labgrid_fails("the console"):
                target.activate(consoles[0])
            yield lambda: DriverLine(consoles[0])


@contextmanager
def _silenced(target: Any, drivers: list[Any]) -> Iterator[None]:
    """Drivers that read the console are off in the context, with all that builds on them, and on again after it.

    Most terminal servers have one connection to a port, and nobody else may read the answers.
    """
    from labgrid.binding import BindingState

    before = [driver for driver in target.drivers if driver.state is BindingState.active]
    with labgrid_fails("the console"):
        for driver in drivers:
            target.deactivate(driver)
    yield
    # What was measured counts more than a driver that is not on again; its next user will hear of it.
    with suppress(TargetError), labgrid_fails("the console"):
        for driver in before:
            target.activate(driver)


def _port_line(port: Any) -> ConsoleLine:
    if type(port).__name__ != "NetworkSerialPort":
        return TtyLine(Path(port.port), port.speed)
    from labgrid.util.proxy import proxymanager

    with labgrid_fails("the way to the console"):
        host, number = proxymanager.get_host_and_port(port)
    return SocketLine(f"{host}:{number}")


class DriverLine:
    """A console that only a driver of labgrid reaches, such as QEMU's."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def send(self, content: bytes) -> None:
        with _link_lost():
            self._driver.write(content)

    def receive(self, timeout_s: float) -> bytes | None:
        import pexpect

        with _link_lost():
            try:
                return bytes(self._driver.read(size=1, timeout=max(0.0, timeout_s)))
            except pexpect.TIMEOUT:
                return None

    def close(self) -> None:
        """The driver is labgrid's."""


@contextmanager
def _link_lost() -> Iterator[None]:
    try:
        with without_log():
            yield
    except Exception as error:
        raise LinkError(f"the console is gone: {one_line(str(error), 300)}") from None
