# SPDX-License-Identifier: Apache-2.0
"""Pages of the kinds of plug-ins of the host, from their docstrings and their tables of options."""

import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType

from markdown_text import Link, code, inline, page, prose, table

from rtproof import exporters, importers, profiles, targets
from rtproof.core import plugins
from rtproof.judge.doubts.registry import RULES, SAID_BY_CHECKS
from rtproof.report import formats


def _modules(package: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    return ((name, plugins.load_plugin(package, name)) for name in plugins.plugin_names(package))


def _options(options: Mapping[str, str], link: Link) -> str:
    rows = [(code(name), inline(text, link)) for name, text in options.items()]
    return table(("option", "what it sets"), rows) if rows else ""


def target_page(link: Link) -> str:
    """Every target with its options."""
    blocks = []
    for name, module in _modules(targets):
        blocks += [f"## {name}", prose(module.__doc__ or "", link), _options(module.OPTIONS, link)]
    return page(
        "Targets",
        "A target is where the agent runs: `rtproof run --target NAME --target-option key=value`. "
        "[Boards](../../boards.md) says what a board needs.",
        *blocks,
    )


def export_page(link: Link) -> str:
    """Every export format with its options."""
    blocks = []
    for name, module in _modules(exporters):
        needs = f"It needs {inline(module.NEEDS, link)}." if hasattr(module, "NEEDS") else ""
        ending = f"The file's name ends with {code(module.SUFFIX)}."
        blocks += [f"## {name}", prose(module.__doc__ or "", link), f"{ending} {needs}", _options(module.OPTIONS, link)]
    return page("Export formats", "`rtproof export RUN --format FORMAT --option KEY=VALUE` writes them.", *blocks)


def import_page(link: Link) -> str:
    """Every format of another tool that can be read."""
    blocks = [f"## {module.TOOL}\n\n{prose(module.__doc__ or '', link)}" for _, module in _modules(importers)]
    return page(
        "Formats that rtproof reads",
        "`show`, `report`, `judge`, `compare` and `history` read the output of these tools, besides the runs of "
        "rtproof. [Files of other tools](../../formats.md) says what each format cannot tell.",
        *blocks,
    )


def report_page(link: Link) -> str:
    """Every format of the report."""
    blocks = []
    for name, module in _modules(formats):
        ending = f"The file's name ends with {code(module.SUFFIX)}."
        blocks += [f"## {name}", prose(module.__doc__ or "", link), ending]
    return page("Report formats", "`rtproof report RUN --format NAME` writes them.", *blocks)


def profile_page(link: Link) -> str:
    """Every profile: what it measures, and how that differs from its article."""
    blocks = []
    for name in profiles.names():
        profile = profiles.load(name)
        differs = "\n".join(f"* {inline(text, link)}" for text in profile.differs)
        blocks += [f"## {name}", inline(profile.title), inline(profile.about, link), differs]
    return page(
        "All profiles",
        "`rtproof run --profile NAME` repeats an article's experiment. The list of each profile says how it differs "
        "from the article. [Profiles](../../profiles.md) has the results beside those of the articles.",
        *blocks,
    )


def rule_page(link: Link) -> str:
    """Every rule of the objections, and the doubts that say the same of a measured run."""
    blocks = []
    for name, rule in RULES.items():
        doubts = ", ".join(map(code, SAID_BY_CHECKS.get(name, ())))
        same = f"Doubts about a measured run that say the same: {doubts}." if doubts else ""
        blocks += [f"## {name}", prose(inspect.getdoc(rule) or "", link), same]
    return page(
        "Rules of the objections",
        "An objection is what the figures of a result say against it. [Objections](../../objections.md) says when each "
        "rule objects, and why no earlier. [The table of doubts](../../json-schema.md#doubts) has what the facts of a "
        "run say against it.",
        *blocks,
    )


def pages(link: Link) -> dict[str, str]:
    """The page of each kind of plug-in, by its place below the generated pages."""
    return {
        "targets.md": target_page(link),
        "export-formats.md": export_page(link),
        "readable-formats.md": import_page(link),
        "report-formats.md": report_page(link),
        "profiles.md": profile_page(link),
        "objection-rules.md": rule_page(link),
    }
