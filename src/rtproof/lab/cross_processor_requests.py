# SPDX-License-Identifier: Apache-2.0
"""What other processors made a guest's processor do within a latency, and the functions that asked for it.

An interrupt from another processor, the stopper thread, or a breakpoint in code that is being patched: the executed
code shows the functions of both sides, but neither their threads nor to which processor an interrupt was sent. So the
sender is the last one before the interrupt came; with more than two processors, each of those that may be the sender.
"""

import bisect
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rtproof.lab.executed_code import CalledFunction, FunctionSpan, of_cpu
from rtproof.summary.trace_text import is_interrupt

LOOK_BACK_NS = 1_000_000
"""Who patches code is looked for so long before the breakpoint."""


@dataclass(frozen=True, eq=False)
class RequestKind:
    """``words``: for one and for several. ``served_by``: the functions in which a processor serves a request.

    ``sent_by``: those that send it. ``lasts``: the sender is still in that function when the request is served.
    ``own``: whether a processor may send it to itself.
    """

    words: tuple[str, str]
    served_by: re.Pattern[str]
    sent_by: re.Pattern[str]
    lasts: bool = False
    own: bool = False


_CALLS = r"(native|arch)_send_call_func\w*_ipi(_mask)?"
_RESCHEDULES = r"(native_|arch_)?smp_send_reschedule"
KINDS = (
    RequestKind(
        ("interrupt to call a function", "interrupts to call a function"),
        re.compile(r"(asm_)?sysvec_call_function(_single)?"),
        re.compile(_CALLS),
    ),
    RequestKind(
        ("interrupt to reschedule", "interrupts to reschedule"),
        re.compile(r"(asm_)?sysvec_reschedule_ipi"),
        re.compile(_RESCHEDULES),
    ),
    RequestKind(
        ("interrupt", "interrupts"),
        re.compile(r"(do_)?handle_IPI|ipi_handler"),
        re.compile(f"{_CALLS}|{_RESCHEDULES}"),
    ),
    RequestKind(
        ("breakpoint in code that was being patched", "breakpoints in code that was being patched"),
        re.compile(r"(asm_)?exc_int3"),
        re.compile(r"text_poke_bp_batch|smp_text_poke_batch_finish"),
        lasts=True,
    ),
    RequestKind(
        ("run of the stopper thread", "runs of the stopper thread"),
        re.compile(r"cpu_stopper_thread"),
        re.compile(r"(__)?cpu_stop_queue\w*_works?"),
        own=True,
    ),
)
"""The third is that of ARM, where one function serves all (arch/*/kernel/smp.c, kernel/stop_machine.c)."""
_ENDS = re.compile(r"_*do_softirq|handle_softirqs|_*schedule|preempt_schedule(_irq|_common|_notrace)?")
"""What runs in these functions serves nobody's request, also if it runs on the way back from one."""


@dataclass(frozen=True)
class RequestSender:
    """Who may have sent a request. ``stack``: its functions, from the outermost inwards."""

    cpu: int
    stack: tuple[str, ...]


@dataclass(frozen=True)
class OutsideRequest:
    """Requests of one kind that one processor served within a latency for the same sender.

    ``start_ns``: when it served the first, from the due time. ``lengths_ns``: in each phase, with the turns of other
    processors. ``own_ns``: its own instructions. ``senders``: more than one if each may be it; none if unknown.
    """

    kind: RequestKind
    cpu: int
    count: int
    start_ns: int
    lengths_ns: tuple[int, ...]
    own_ns: int
    senders: tuple[RequestSender, ...]

    @property
    def length_ns(self) -> int:
        return sum(self.lengths_ns)

    @property
    def words(self) -> str:
        """The kind, for as many as there are."""
        one, several = self.kind.words
        return f"{self.count} {one if self.count == 1 else several}"


Part = tuple[int, int, int]
"""From when to when a phase lasts, and the processor to which it belongs."""


def cross_processor_requests(
    spans: Sequence[FunctionSpan], parts: Sequence[Part], due_ns: int, expected_ns: Iterable[int] = ()
) -> tuple[OutsideRequest, ...]:
    """The requests within the phases of a latency, the longest first. ``spans``: of the whole recording.

    ``expected_ns``: when interrupts came that belong to the wake-up of the measured thread, so that they are left out.
    """
    served = _Served(spans)
    found: dict[tuple[RequestKind, int, tuple[RequestSender, ...]], list[_Piece]] = {}
    senders = functools.cache(lambda request: _senders(spans, served, request))
    for piece in _pieces(spans, parts, served):
        if piece.request.begin_ns not in expected_ns:
            key = piece.request.kind, piece.request.cpu, senders(piece.request)
            found.setdefault(key, []).append(piece)
    joined = [
        OutsideRequest(
            kind,
            cpu,
            count=len({piece.request for piece in pieces}),
            start_ns=pieces[0].start_ns - due_ns,
            lengths_ns=tuple(
                sum(piece.length_ns for piece in pieces if piece.part == part) for part in range(len(parts))
            ),
            own_ns=sum(piece.own_ns for piece in pieces),
            senders=who,
        )
        for (kind, cpu, who), pieces in found.items()
    ]
    return tuple(sorted(joined, key=lambda request: -request.length_ns))


@dataclass(frozen=True, eq=False)
class _Request:
    """One request that a processor served. ``before_ns``: when it began to serve the one before of this kind."""

    kind: RequestKind
    cpu: int
    begin_ns: int
    before_ns: int


@dataclass(frozen=True)
class _Piece:
    """A part of the time in which a request was served. ``part``: the place of the phase."""

    request: _Request
    part: int
    start_ns: int
    length_ns: int
    own_ns: int


def _pieces(spans: Sequence[FunctionSpan], parts: Sequence[Part], served: "_Served") -> Iterator[_Piece]:
    """A turn of another processor belongs to what its processor did before the turn."""
    for part, (start_ns, stop_ns, cpu) in enumerate(parts):
        own = of_cpu(spans, cpu)
        first = max(0, bisect.bisect_right(own, start_ns, key=lambda span: span.start_ns) - 1)
        last = bisect.bisect_left(own, stop_ns, key=lambda span: span.start_ns)
        ends_ns = [*(span.start_ns for span in own[first + 1 : last]), stop_ns]
        for span, end_ns in zip(own[first:last], ends_ns, strict=False):
            request, begin_ns = served.request(span.call, cpu), max(span.start_ns, start_ns)
            if request is not None:
                own_ns = max(0, min(span.end_ns, stop_ns) - begin_ns)
                yield _Piece(request, part, begin_ns, end_ns - begin_ns, own_ns)


@functools.cache
def _kind_served_by(name: str) -> RequestKind | None:
    return next((kind for kind in KINDS if kind.served_by.fullmatch(name.partition(".")[0])), None)


@dataclass
class _Served:
    """Which request each call serves. ``_outermost``: the outermost call that serves the same, and the kind."""

    spans: Sequence[FunctionSpan]
    _outermost: dict[CalledFunction, tuple[CalledFunction, RequestKind] | None] = field(default_factory=dict)
    _requests: dict[CalledFunction, _Request] = field(default_factory=dict)

    def __post_init__(self) -> None:
        latest_ns: dict[tuple[RequestKind, int], int] = {}
        for span in self.spans:
            found = self._serving(span.call)
            if found is None or found[0] in self._requests:
                continue
            call, kind = found
            before_ns = latest_ns.get((kind, span.cpu), self.spans[0].start_ns)
            self._requests[call] = _Request(kind, span.cpu, span.start_ns, before_ns)
            latest_ns[kind, span.cpu] = span.start_ns

    def request(self, call: CalledFunction, cpu: int) -> _Request | None:
        """The request that a call serves on this processor; None if it serves none."""
        found = self._serving(call)
        request = self._requests.get(found[0]) if found else None
        return request if request and request.cpu == cpu else None

    def _serving(self, call: CalledFunction) -> tuple[CalledFunction, RequestKind] | None:
        unknown: list[CalledFunction] = []
        node: CalledFunction | None = call
        while node is not None and node not in self._outermost:
            unknown.append(node)
            node = node.parent
        found = self._outermost[node] if node is not None else None
        for each in reversed(unknown):
            kind = _kind_served_by(each.name)
            if kind is not None and (found is None or found[1] is not kind):
                found = each, kind
            elif kind is None and (is_interrupt(each.name) or _ENDS.fullmatch(each.name.partition(".")[0])):
                found = None
            self._outermost[each] = found
        return found


def _senders(spans: Sequence[FunctionSpan], served: _Served, request: _Request) -> tuple[RequestSender, ...]:
    """Who may have sent a request: the last of each processor since the request before; else the last one of all."""
    last: dict[int, FunctionSpan] = {}
    for span in _sending(spans, request):
        last[span.cpu] = span
    fresh = [span for span in last.values() if span.start_ns >= request.before_ns]
    found = fresh or sorted(last.values(), key=lambda span: span.start_ns)[-1:]
    return tuple(sorted({_sender(span, request.kind) for span in found}, key=lambda sender: sender.cpu))


def _sending(spans: Sequence[FunctionSpan], request: _Request) -> Iterator[FunctionSpan]:
    """The spans up to the request in which one may have been sent, in order."""
    kind, since_ns = request.kind, request.begin_ns - LOOK_BACK_NS
    sends = functools.cache(lambda name: kind.sent_by.fullmatch(name.partition(".")[0]) is not None)
    for span in spans:
        if span.start_ns > request.begin_ns:
            return
        if span.cpu == request.cpu and not kind.own:
            continue
        if (span.began and sends(span.name)) or (
            kind.lasts and span.start_ns >= since_ns and any(sends(call.name) for call in span.call.callers())
        ):
            yield span


def _sender(span: FunctionSpan, kind: RequestKind) -> RequestSender:
    stack = span.call.stack()
    sends = [place for place, name in enumerate(stack) if kind.sent_by.fullmatch(name.partition(".")[0])]
    return RequestSender(span.cpu, stack[: sends[-1] + 1])
