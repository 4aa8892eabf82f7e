# SPDX-License-Identifier: Apache-2.0
"""The way to a shell on a board behind a Target of labgrid: ssh, or a serial port. Not a target itself."""

import shlex
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from rtproof.boards.console import Console, ConsoleLine, SocketLine, TtyLine
from rtproof.boards.console_shell import ConsoleShell
from rtproof.boards.labgrid_session import labgrid_fails
from rtproof.boards.shell import Shell
from rtproof.core.errors import LinkError, TargetError
from rtproof.core.scratch import scratch_folder
from rtproof.targets import serial
from rtproof.targets.ssh import SshShell

TRY_AGAIN_S = 2
AS_LABGRID = ("-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR")
"""Boards get new keys with every system that is written to them, so labgrid compares none."""


@contextmanager
def shell_of(target: Any, options: dict[str, str], boot_s: float) -> Iterator[Shell]:
    """A shell by ssh if the target has a NetworkService, otherwise on its serial port. TargetError without either.

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
    """A shell by ssh, which is tried again while the board may be booting."""
    driver = _driver(target, "SSHDriver")
    with scratch_folder() as folder:
        where = {
            "host": service.address.partition("%")[0],
            "port": str(service.port),
            "user": options.get("user") or (driver and driver.username) or service.username,
        }
        more = list(AS_LABGRID)
        password = driver.password if driver and driver.password is not None else service.password
        program = with_password(folder, password) if password else ("ssh",)
        if password:
            more = ["-o", "BatchMode=no", "-o", "NumberOfPasswordPrompts=1", *more]
        if "key" in options:
            more += ["-i", options["key"]]
        elif driver and driver.keyfile:
            more += ["-i", target.env.config.resolve_path(driver.keyfile) if target.env else driver.keyfile]
        shell = SshShell(where, folder / "s", program, (*more, *_proxy_words(service)))
        end = time.monotonic() + boot_s
        while True:
            try:
                shell.first_connection()
                break
            except LinkError:
                if time.monotonic() > end:
                    raise
                time.sleep(TRY_AGAIN_S)
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


def _proxy_words(service: Any) -> tuple[str, ...]:
    """The way through the exporter's machine, if labgrid says that there is no other."""
    from labgrid.util.proxy import proxymanager

    address, _, device = service.address.partition("%")
    with labgrid_fails("the way through the exporter"):
        command = proxymanager.get_command(service, address, service.port, device or None)
    return ("-o", f"ProxyCommand={shlex.join(command)}") if command else ()


@contextmanager
def _by_console(target: Any, options: dict[str, str]) -> Iterator[Shell]:
    """A shell on the serial port, which labgrid's drivers leave meanwhile."""
    from labgrid.protocol import ConsoleProtocol

    port = _resource(target, "NetworkSerialPort", "RawSerialPort", "USBSerialPort")
    if not port:
        raise TargetError(f"labgrid has neither a NetworkService nor a serial port for {target.name}")
    shell_driver = _driver(target, "ShellDriver")
    user = options.get("user") or (shell_driver.username if shell_driver else "")
    password = serial.password_of(options) or (shell_driver.password if shell_driver else "") or ""
    with (
        _silenced(target, [driver for driver in target.drivers if isinstance(driver, ConsoleProtocol)]),
        closing(Console(lambda: _port_line(port))) as console,
        closing(ConsoleShell(console, (user, password), f"the console of {target.name}")) as shell,
    ):
        yield shell


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
