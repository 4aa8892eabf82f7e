# SPDX-License-Identifier: Apache-2.0
"""Article 3's figures: the time that each loop of a periodic application took, loop by loop."""

from collections.abc import Iterator, Mapping, Sequence

from rtproof.analysis import app
from rtproof.analysis.envelope import MOST, Drawn, Envelope
from rtproof.analysis.phrases import value
from rtproof.record import Record
from rtproof.report.blocks import Curve, Plot
from rtproof.report.figures import US

TITLE = "Overall loop time"


def drawn(record: Record, lengths: Mapping[int, int]) -> dict[int, Drawn]:
    """The loop times of some threads. lengths: by thread, one more than the index of its last loop."""
    envelopes = {thread: Envelope(length, MOST) for thread, length in lengths.items()}
    for piece in app.loops(record):
        if piece.thread in envelopes:
            envelopes[piece.thread].add(piece.index[piece.followed], piece.loop_ns[piece.followed])
    found = {thread: envelope.result() for thread, envelope in envelopes.items()}
    return {thread: each for thread, each in found.items() if each.at.size}


def plot(named: Sequence[tuple[str, Drawn]], title: str = TITLE, more: str = "") -> Plot | None:
    """All in one plot, those that vary most first, so that the others lie over them; None without a loop.

    more: a sentence to add to what it shows.
    """
    some = sorted(named, key=lambda each: int(each[1].low.min()) - int(each[1].high.max()))
    if not some:
        return None
    width = max(each.width for _, each in some)
    least, most = min(int(each.low.min()) for _, each in some), max(int(each.high.max()) for _, each in some)
    what = (
        "The time from the top of each loop to the next."
        if width == 1
        else f"The shortest and the longest of each {width:,} loops."
    )
    ends = [f"{name}: {value(int(each.low.min()))} to {value(int(each.high.max()))}." for name, each in named]
    says = " ".join(filter(None, (what, *ends, more)))
    curves = tuple(curve for name, each in some for curve in _curves(name, each))
    return Plot(title, says, "loop", f"loop time [{US.name}]", curves, y_ends=_ends(least, most))


def _ends(least: int, most: int) -> tuple[float, float]:
    """Loops differ by far less than they take, so the axis shows where they are and not where zero is."""
    room = max((most - least) / 20, 1)
    return US.scale(least - room), US.scale(most + room)


def _curves(name: str, each: Drawn) -> Iterator[Curve]:
    x = tuple(map(float, each.at))
    for ending, ys in (("", each.high),) if each.width == 1 else ((" longest", each.high), (" shortest", each.low)):
        yield Curve(f"{name}{ending}", x, tuple(US.scale(y) for y in ys.tolist()))
