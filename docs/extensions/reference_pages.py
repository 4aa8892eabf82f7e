# SPDX-License-Identifier: Apache-2.0
"""A Sphinx extension: before Sphinx looks for pages, it writes those of the reference that the program itself tells.

They go to docs/reference/generated. The man builder gets only the parts that the man pages include, because it may run
on a system that lacks what the plug-ins need.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import agent_pages
import command_pages

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = Path(__file__).parents[1] / "reference" / "generated"
PARTS = "man"
"""The folder of the parts that pages include. Their ending is no page's, so Sphinx does not take them for pages."""


_SPACE_AFTER_HEADING = re.compile(r"^(\.S[HS] .*\n)\.sp\n", re.MULTILINE)


def parts() -> dict[str, str]:
    """What the man pages include, by its place below the generated pages."""
    return {
        f"{PARTS}/commands.part": command_pages.man_commands(),
        f"{PARTS}/options.part": command_pages.man_options(),
        f"{PARTS}/exit-status.part": command_pages.man_exit_status(),
        f"{PARTS}/agent-synopsis.part": agent_pages.man_synopsis(),
        f"{PARTS}/agent-options.part": agent_pages.man_options(),
        f"{PARTS}/agent-names.part": agent_pages.man_names(),
    }


def all_pages() -> dict[str, str]:
    """Every generated page, by its place below the generated pages."""
    import plugin_pages

    return command_pages.pages() | agent_pages.pages() | plugin_pages.pages(command_pages.links_from(""))


def write(wanted: dict[str, str], folder: Path = FOLDER) -> None:
    """Write what differs, and delete what is no longer wanted. Sphinx does not read again what stays the same."""
    for path in folder.rglob("*.*"):
        if str(path.relative_to(folder)) not in wanted:
            path.unlink()
    for name, content in wanted.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            path.write_text(content, encoding="utf-8")


def _write_for(app: "Sphinx") -> None:
    write(parts() if app.builder.name == "man" else parts() | all_pages())


def _without_idle_space(app: "Sphinx", exception: Exception | None) -> None:
    """Docutils asks for a space after each heading, where there is one already; mandoc warns of it."""
    for path in Path(app.outdir).glob("*.[1-9]") if app.builder.name == "man" and not exception else ():
        text = path.read_text(encoding="utf-8")
        path.write_text(_SPACE_AFTER_HEADING.sub(r"\1", text), encoding="utf-8")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", _write_for)
    app.connect("build-finished", _without_idle_space)
    return {"parallel_read_safe": True}
