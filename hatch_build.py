# SPDX-License-Identifier: Apache-2.0
"""Put the programs in C into the wheel: their sources, and the agent and the scanner as built for this machine.

Also make a README for package indexes, which have none of the files that the links of the checkout's README name.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.tags import platform_tags

WITHOUT_PROGRAMS = "RTPROOF_WHEEL_WITHOUT_PROGRAMS"
"""If this variable is set, the wheel has no program in it. debian/rules builds them with Debian's own flags."""


class AgentHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds with the package's own code, whose cache makes a second install cheap."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """A wheel for everyday use carries the agent; an editable one takes it from the checkout."""
        if version == "editable":
            return
        for name in ("agent", "guest", "kmod", "qemu_plugin", "scanner", "soaker"):
            build_data["force_include"][str(Path(self.root, name))] = f"rtproof/_{name}_source"
        if os.environ.get(WITHOUT_PROGRAMS):
            return
        sys.path.insert(0, str(Path(self.root, "src")))
        from rtproof.agents import build
        from rtproof.agents.architectures import host_architecture
        from rtproof.core.errors import UserError

        folder = f"rtproof/_agents/{host_architecture().name}"
        try:
            for program in (build.build_agent, build.build_scanner):
                try:
                    file = program()
                except UserError as error:
                    self.app.display_warning(f"not in the wheel, but built on its first use: {error}")
                    continue
                build_data["force_include"][str(file)] = f"{folder}/{file.name}"
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{platforms()}"
        finally:
            sys.path.pop(0)


def platforms() -> str:
    """The platform tags of a wheel that carries the agent and the scanner of this machine.

    They make such a wheel another file than one of the same version built on another architecture, so that the two may
    not have one name, although each would work anywhere: where the programs do not fit, they are built on their first
    use. The agent is static, and the scanner, a shared library, names none: its only symbol from outside is memset,
    which the process of Python has from either C library. So both libraries' tags hold, each with the oldest version
    that every architecture has. Where pip takes neither, as on ARMv6, the tag is the system's own.
    """
    accepted = list(platform_tags())
    own = next(tag for tag in accepted if tag.startswith("linux_"))
    machine = own.removeprefix("linux_")
    portable = [f"manylinux_2_17_{machine}", f"musllinux_1_1_{machine}"]
    return ".".join(portable) if set(portable) & set(accepted) else own


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
