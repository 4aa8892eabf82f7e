# SPDX-License-Identifier: Apache-2.0
"""Which kernels the lab has, and whether it can fetch Debian's."""

from collections.abc import Iterator

from rtproof.core.errors import UserError
from rtproof.doctor.findings import Finding, State
from rtproof.doctor.host import Host
from rtproof.doctor.remedies import packages
from rtproof.lab.debian_packages import check_tools, sources_for
from rtproof.lab.kernel_catalogue import SUITES, catalogue
from rtproof.vm.cache_folders import FILE_LIST, lab_cache

FEATURES = ("lab", "several-cpus")
FIRST = "debian-6.12-rt"


def check(host: Host) -> Iterator[Finding]:
    """List the kernels in the cache without reading them, and look for the programs and the mirror that bring more."""

    kept = [each.name for each in catalogue() if (lab_cache() / "kernels" / each.name / FILE_LIST).is_file()]
    refusal = ""
    try:
        check_tools()
        sources_for(SUITES["6.12"], folder=host.path("/etc/apt"))
    except UserError as problem:
        refusal = str(problem)
    name, fetch = "kernels", f"rtproof lab kernels fetch {FIRST}"
    if refusal and not kept:
        meaning = f"The lab has no kernel and can fetch none, so you must give your own: {refusal}."
        yield Finding(name, FEATURES, State.LIMITED, meaning, "rtproof lab compare --kernel FILE", needed=False)
    elif refusal:
        meaning = f"The lab has {', '.join(kept)} and can fetch no other: {refusal}."
        yield Finding(name, FEATURES, State.LIMITED, meaning, needed=False)
    elif not kept:
        meaning = "The lab has no kernel yet. The first use fetches it from Debian's mirror, or you fetch it now."
        yield Finding(name, FEATURES, State.OK, meaning, fetch)
    else:
        yield Finding(name, FEATURES, State.OK, f"The lab has {', '.join(kept)} and can fetch more of Debian's.")
    yield from _signatures(host)


def _signatures(host: Host) -> Iterator[Finding]:
    """apt checks the signature of what it fetches, with one of three programs."""
    answers = [host.ask(program, "--version") for program in ("sqv", "gpgv", "gpgv-sq")]
    if all(answer.fault for answer in answers) and host.ask("apt-get", "--version").path:
        meaning = "apt cannot check signatures without gpgv or sqv, so the lab can fetch nothing."
        yield Finding("signatures", FEATURES, State.LIMITED, meaning, packages(host, "gpgv"), needed=False)
