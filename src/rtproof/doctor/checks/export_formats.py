# SPDX-License-Identifier: Apache-2.0
"""Which formats ``rtproof export`` can write here."""

from collections.abc import Iterator

from rtproof.core import plugins
from rtproof.core.errors import UserError
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import python_package, requirement

FEATURES = ("exports",)


def check(host: Host) -> Iterator[Finding]:
    """Ask each format that needs a package for it."""
    from rtproof import exporters

    names = plugins.plugin_names(exporters)
    refused: dict[str, tuple[str, str]] = {}
    for name in names:
        module = plugins.load_plugin(exporters, name)
        if hasattr(module, "EXTRA"):
            try:
                module.require()
            except UserError as refusal:
                refused[name] = str(refusal), module.EXTRA
    if not refused:
        yield Finding("export formats", FEATURES, State.OK, f"All {len(names)} formats can be written.")
    for name, (sentence, extra) in refused.items():
        meaning = f"{len(names) - len(refused)} of {len(names)} formats can be written, and {name} cannot: {sentence}."
        command = python_package(host, requirement(extra))
        yield Finding(f"format {name}", FEATURES, State.LIMITED, meaning, command, needed=False)
