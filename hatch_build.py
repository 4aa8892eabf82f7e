# SPDX-License-Identifier: Apache-2.0
"""Put what runs on targets into the wheel: its sources, and the agent for this machine if something can build it."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class AgentHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds with the package's own code, whose cache makes a second install cheap."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """A wheel for everyday use carries the agent; an editable one takes it from the checkout."""
        if version == "editable":
            return
        for name in ("agent", "guest", "kmod"):
            build_data["force_include"][str(Path(self.root, name))] = f"rtproof/_{name}_source"
        sys.path.insert(0, str(Path(self.root, "src")))
        from rtproof.agents.architectures import host_architecture
        from rtproof.agents.build import AGENT_NAME, build_agent
        from rtproof.core.errors import UserError

        try:
            build_data["force_include"][str(build_agent())] = f"rtproof/_agents/{host_architecture().name}/{AGENT_NAME}"
        except UserError as error:
            self.app.display_warning(f"the agent is not built yet, that is left to its first use: {error}")
        finally:
            sys.path.pop(0)
