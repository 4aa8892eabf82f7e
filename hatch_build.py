# SPDX-License-Identifier: Apache-2.0
"""Put the programs in C into the wheel: their sources, and the agents and scanners as built here.

There are two wheels. ``make wheel`` sets ``RTPROOF_WHEEL=complete`` and makes the one to hand out: it has the agent for
every architecture and the scanner for those of 64 bits, all built by the pinned zig, and fits every machine. Without
that variable, as with ``pip install CHECKOUT``, the wheel has what a compiler of this machine builds for this machine,
and its name says for which machine it is. ``RTPROOF_WHEEL=bare`` leaves the programs to others, such as the rules of a
distribution's package.

Also make a README for package indexes, which have none of the files that the links of the checkout's README name.
"""

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.tags import platform_tags

VARIABLE = "RTPROOF_WHEEL"
COMPLETE, PLATFORM, BARE = "complete", "platform", "bare"
MADE = {".a", ".cmd", ".ko", ".mod", ".o", ".order", ".so", ".symvers"}
"""Endings of what make leaves beside the sources."""
NOTICES = {"musl-COPYRIGHT": "lib/libc/musl/COPYRIGHT", "zig-LICENSE": "LICENSE"}
"""The licences of what zig links into an agent, by their names in the wheel: the C library and the runtime (MIT)."""


class AgentHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds with the package's own code, whose cache makes a second install cheap."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """A wheel for everyday use carries the agent; an editable one takes it from the checkout."""
        if version == "editable":
            return
        wish = os.environ.get(VARIABLE, PLATFORM)
        if wish not in (COMPLETE, PLATFORM, BARE):
            raise SystemExit(f"{VARIABLE} is {COMPLETE}, {PLATFORM} or {BARE}, not {wish!r}")
        into = build_data["force_include"]
        for name in ("agent", "guest", "kmod", "qemu_guard", "qemu_plugin", "scanner", "soaker"):
            into.update(sources(Path(self.root, name), f"rtproof/_{name}_source"))
        sys.path.insert(0, str(Path(self.root, "src")))
        from rtproof.core.errors import UserError

        try:
            if wish == COMPLETE:
                into.update(programs_for_all())
                return
            if wish == PLATFORM:
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{self._platforms(into)}"
        except UserError as error:
            raise SystemExit(str(error)) from error
        finally:
            sys.path.pop(0)

    def _platforms(self, into: dict[str, str]) -> str:
        """Add the programs for this machine; return the platform tags. Without a program they are the system's own.

        So nobody takes it for the complete one.
        """
        from rtproof.agents import build
        from rtproof.agents.architectures import host_architecture
        from rtproof.core.errors import UserError

        before = len(into)
        for program in (build.build_agent, build.build_scanner):
            try:
                file = program()
            except UserError as error:
                self.app.display_warning(f"not in the wheel, but built on its first use: {error}")
                continue
            into[str(file)] = f"rtproof/_agents/{host_architecture().name}/{file.name}"
        return platforms() if len(into) > before else own_platform()


def sources(folder: Path, place: str) -> dict[str, str]:
    """The files of a program in C and their places in the wheel, without the agent's tests and what make leaves."""
    files = {file: str(file.relative_to(folder)) for file in sorted(folder.rglob("*")) if file.is_file()}
    return {
        str(file): f"{place}/{name}"
        for file, name in files.items()
        if file.suffix not in MADE and not name.startswith(".") and (folder.name != "agent" or "tests/" not in name)
    }


def programs_for_all() -> dict[str, str]:
    """The agents and scanners for all architectures, and the notices of what they contain. UserError without zig."""
    return dict(_programs_for_all())


def _programs_for_all() -> Iterator[tuple[str, str]]:
    from rtproof.agents import build
    from rtproof.agents.architectures import ARCHITECTURES

    for arch in sorted(ARCHITECTURES, key=lambda each: each.name):
        for program in (build.build_agent, build.build_scanner)[: 2 if arch.has_scanner else 1]:
            file = program(arch.name, build.PINNED)
            yield str(file), f"rtproof/_agents/{arch.name}/{file.name}"
    found = importlib.util.find_spec("ziglang")
    assert found
    assert found.origin
    for name, notice in NOTICES.items():
        yield str(Path(found.origin).parent / notice), f"rtproof/_agents/{name}"


def own_platform() -> str:
    """The tag of this system and of no other."""
    return next(tag for tag in platform_tags() if tag.startswith("linux_"))


def platforms() -> str:
    """The platform tags of a wheel that carries the agent and the scanner of this machine.

    They make such a wheel another file than one of the same version built on another architecture, so that the two may
    not have one name, although each would work anywhere: where the programs do not fit, they are built on their first
    use. The agent is static, and the scanner, a shared library, names none: its only symbol from outside is memset,
    which the process of Python has from either C library. So both libraries' tags hold, each with the oldest version
    that every architecture has. Where pip takes neither, as on ARMv6, the tag is the system's own.
    """
    own = own_platform()
    machine = own.removeprefix("linux_")
    portable = [f"manylinux_2_17_{machine}", f"musllinux_1_1_{machine}"]
    return ".".join(portable) if set(portable) & set(platform_tags()) else own


class ReadmeHook(MetadataHookInterface):
    """Turns links into the checkout into the names of the files there, because no address of the checkout is known."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Leave pictures out; links to the web stay."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = re.sub(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n+", "", text, flags=re.MULTILINE)
        text = text.replace("one HTML file that needs no network:", "one HTML file that needs no network.")
        text = re.sub(r"\[([^\]]*)\]\((?!https?:)([^)]*)\)", name_file, text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def name_file(link: re.Match[str]) -> str:
    label, path = link.groups()
    return f"`{path}`" if label == path else f"{label} (`{path}`)"
