# SPDX-License-Identifier: Apache-2.0
"""Which settings of this machine the audit cannot read, so that its checks stay unknown."""

from collections.abc import Iterator

from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import own_command

FEATURES = ("audit",)
SHOWN = 3


def check(host: Host) -> Iterator[Finding]:
    """Read every file that the checks of the audit name."""
    from rtproof.audit.check_file import all_checks

    name = "settings"
    refused: dict[str, str] = {}
    blind = 0
    for each in all_checks():
        own = {path: why for path in each.read if (why := _why_not_readable(host, path))}
        refused |= own
        blind += bool(own)
    if not refused:
        yield Finding(name, FEATURES, State.OK, "The audit can read each setting that this kernel has.")
        return
    shown = list(refused)[:SHOWN]
    rest = f" and {len(refused) - len(shown)} more" if len(refused) > len(shown) else ""
    meaning = (
        f"{blind} of the audit's {len(all_checks())} checks stay unknown, because {', '.join(shown)}{rest} "
        f"cannot be read ({refused[shown[0]]})."
    )
    yield Finding(name, FEATURES, State.LIMITED, meaning, own_command(host, "audit"), needed=False)


def _why_not_readable(host: Host, name: str) -> str:
    """Why a file cannot be read although it is there; "" if it can, or if it is not there. Of a pattern: the first."""
    if not name.startswith("/") or "{" in name:
        return ""
    place = host.path(name)
    try:
        if any(mark in name for mark in "*[?"):
            place = next(host.root.glob(name.lstrip("/")), place)
        if place.is_file():
            host.read(f"/{place.relative_to(host.root)}")
    except PermissionError as error:
        return error.strerror or "permission denied"
    except (OSError, ValueError):
        return ""
    return ""
