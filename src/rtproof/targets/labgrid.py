# SPDX-License-Identifier: Apache-2.0
"""A board that labgrid shares: a place of its coordinator, or a target of an environment file.

    place=rpi4-1    place=+ reserve='board=rpi4'    config=lab.yaml role=main state=shell

The place is acquired, the board switched on, and the place released at the end, also if rtproof is killed. A run that
is left there keeps the place acquired until somebody takes it up. Needs the package labgrid.
"""

import os
import shlex
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rtproof.boards.board_target import BoardTarget, board_options
from rtproof.boards.console import Console, ConsoleLine, SocketLine, TtyLine
from rtproof.boards.console_shell import ConsoleShell
from rtproof.boards.labgrid_place import (
    ANY,
    Held,
    LabgridSession,
    PlaceRequest,
    holding,
    labgrid_fails,
    require_labgrid,
)
from rtproof.boards.shell import Shell
from rtproof.core.errors import LinkError, TargetError, UserError
from rtproof.core.printable import one_line
from rtproof.core.scratch import scratch_folder
from rtproof.core.units import parse_duration
from rtproof.targets import serial
from rtproof.targets.ssh import SshShell

OPTIONS: dict[str, str] = {
    "place": "name or alias of a place; + for one that a reservation finds",
    "reserve": "tags of the place to reserve for place=+, such as 'board=rpi4 ram=4g'",
    "config": "an environment file of labgrid, in place of place",
    "role": "the target in it (main)",
    "state": "the state into which the environment's strategy brings the board, such as shell",
    "coordinator": "its address (default: what the environment file or LG_COORDINATOR says, or 127.0.0.1:20408)",
    "wait": "how long to wait for a place that somebody else holds (0s)",
    "release-after": "how long after rtproof was killed the place is released (60s)",
    "acquisition": "of a run that was left there; rtproof attach sets it",
    "key": "file with the key for ssh",
    "user": "who logs in on a console, if the board asks",
    "password-file": serial.OPTIONS["password-file"],
    **board_options(),
}
DEFAULT_COORDINATOR = "127.0.0.1:20408"
TRY_AGAIN_S = 2
AS_LABGRID = ("-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR")
"""Boards get new keys with every system that is written to them, so labgrid compares none."""
BOOT_S = 90
"""How long a board that was switched on may take until ssh reaches it."""


class LabgridBoard(BoardTarget):
    """The board of a place. found: options that find it again; kept: the place stays acquired at the end."""

    found: Mapping[str, str]
    kept = False

    def options_to_find_it(self, options: dict[str, str]) -> dict[str, str]:
        return {**{name: text for name, text in options.items() if name not in ("reserve", "state")}, **self.found}

    def keep(self) -> None:
        self.kept = True


@contextmanager
def open_target(options: dict[str, str]) -> Iterator[BoardTarget]:
    """The board, once its place is acquired and a shell is reached there."""
    require_labgrid()
    request = _place_request(options)
    with ExitStack() as stack:
        environment = _environment(options)
        if environment:
            request = replace(request, name=_place_of(environment, options))
        session = held = None
        if request.name:
            usual = os.environ.get("LG_COORDINATOR", DEFAULT_COORDINATOR)
            stored = environment.config.get_option("coordinator_address", usual) if environment else usual
            session = stack.enter_context(closing(LabgridSession(options.get("coordinator", stored))))
            held = stack.enter_context(holding(session, request))
            session.lend()
        with labgrid_fails("the board"):
            if environment:
                target = environment.get_target(options.get("role", "main"))
            else:  # one with the resources of the place and no driver
                import labgrid
                from labgrid.resource.remote import RemotePlace

                target = labgrid.Target(held.name if held else "")
                RemotePlace(target, name=target.name)
        stack.callback(_clean_up, target)
        switched = not request.mark and _switch_on(target, options, session, held)
        board = stack.enter_context(_board(target, options, BOOT_S if switched else 0))
        board.found = _found(options, held)
        yield board
        if held:
            held.left = held.left or board.kept


@contextmanager
def _board(target: Any, options: dict[str, str], boot_s: float) -> Iterator[LabgridBoard]:
    """The board by ssh if the target has a NetworkService, which may take ``boot_s``, otherwise on its serial port."""
    service = _resource(target, "NetworkService")
    with _by_ssh(target, service, options, boot_s) if service else _by_console(target, options) as shell:
        yield LabgridBoard.with_options(shell, options)


@contextmanager
def board_of(labgrid_target: Any, options: dict[str, str]) -> Iterator[BoardTarget]:
    """A board behind a Target of labgrid, such as its pytest fixture's, which others have acquired and booted."""
    with _board(labgrid_target, options, 0) as board:
        board.found = {}
        yield board


# What is asked.


def _place_request(options: dict[str, str]) -> PlaceRequest:
    name = options.get("place", "")
    if bool(name) == bool(options.get("config")):
        raise UserError("the target labgrid needs either place=NAME or config=FILE: --target-option place=NAME")
    if options.get("reserve") and name != ANY:
        raise UserError("reserve= goes with place=+")
    if options.get("state") and name:
        raise UserError("state= needs the strategy of an environment file: config=FILE")
    wait_s, release_after_s = (
        parse_duration(options.get(key, usual)) / 1e9 for key, usual in (("wait", "0s"), ("release-after", "60s"))
    )
    reserve = options.get("reserve", "")
    tags = dict(word.partition("=")[::2] for word in reserve.split())
    if not all(tags) or not all(tags.values()):
        raise UserError(f"reserve={reserve} is not KEY=VALUE, or several of them with blanks between")
    return PlaceRequest(name, tags, wait_s, release_after_s, options.get("acquisition", ""))


def _environment(options: dict[str, str]) -> Any:
    """labgrid's Environment; None without a file. UserError if it cannot be read."""
    if not options.get("config"):
        return None
    import labgrid

    try:
        return labgrid.Environment(options["config"])
    except Exception as error:
        raise UserError(f"{options['config']} is no environment of labgrid: {one_line(str(error), 300)}") from None


def _place_of(environment: Any, options: dict[str, str]) -> str:
    """The place of the role; "" for a board of this machine: nothing is acquired."""
    from labgrid.factory import target_factory

    role = options.get("role", "main")
    with labgrid_fails(options["config"]):
        roles = environment.config.get_targets()
        resources = target_factory.normalize_config(roles[role])[0] if role in roles else None
    if resources is None:
        raise UserError(f"{options['config']} has no target {role}; there are: {', '.join(map(str, roles)) or 'none'}")
    names = list(resources.get("RemotePlace", {}))
    if len(names) > 1:
        raise UserError(f"the target {role} has several places ({', '.join(names)}): rtproof measures on one")
    return names[0] if names else ""


def _found(options: dict[str, str], held: Held | None) -> dict[str, str]:
    """What finds the board again: where the environment lies from any folder, and in which acquisition."""
    found = {"config": str(Path(options["config"]).absolute())} if "config" in options else {}
    if held and "place" in options:
        found["place"] = held.name
    return {**found, "acquisition": held.mark or "by hand"} if held else found


# labgrid's objects.


def _clean_up(target: Any) -> None:
    """Switch labgrid's drivers off. What was measured counts more than one that fails at that."""
    with suppress(TargetError), labgrid_fails("the end"):
        target.cleanup()


def _switch_on(target: Any, options: dict[str, str], session: LabgridSession | None, held: Held | None) -> bool:
    """Bring the board into the wished state, or give it power. Whether it may have been off before."""
    from labgrid.exceptions import NoDriverFoundError
    from labgrid.protocol import PowerProtocol

    if "state" in options:
        with labgrid_fails(f"the strategy does not reach the state {options['state']}"):
            target.get_strategy().transition(options["state"])
        return True
    with labgrid_fails("the board's power"):
        try:
            target.get_driver(PowerProtocol).on()
        except NoDriverFoundError:
            return bool(session and held and session.power_on(held.name))
    return True


# The way to a shell on the board.


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
    """Drivers that read the console are off in the context: most terminal servers have one connection to a port."""
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
