# SPDX-License-Identifier: Apache-2.0
"""What other processors made a guest's processor do within a latency, and the functions that asked for it.

An interrupt from another processor, the stopper thread, or a breakpoint in code that is being patched: the executed
code shows the functions of both sides, but neither their threads nor to which processor an interrupt was sent. So the
sender is the last one before the interrupt came; with more than two processors, each of those that may be the sender.
"""

import bisect
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

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
    serving = functools.partial(_serving, {})
    requests = _served_requests(spans, serving)
    senders = functools.cache(lambda request: _senders(spans, request))
    found: dict[tuple[RequestKind, int, tuple[RequestSender, ...]], OutsideRequest] = {}
    counted: set[_Request] = set()
    for part, (start_ns, stop_ns, cpu) in enumerate(parts):
        for span, end_ns in _until_next(of_cpu(spans, cpu), start_ns, stop_ns):
            request = requests.get(serving(span.call))
            if request is None or request.cpu != cpu or request.begin_ns in expected_ns:
                continue
            begin_ns = max(span.start_ns, start_ns)
            key = request.kind, cpu, senders(request)
            whole = found.get(key) or OutsideRequest(
                request.kind, cpu, 0, begin_ns - due_ns, (0,) * len(parts), 0, key[2]
            )
            lengths_ns = list(whole.lengths_ns)
            lengths_ns[part] += end_ns - begin_ns
            found[key] = replace(
                whole,
                count=whole.count + (request not in counted),
                lengths_ns=tuple(lengths_ns),
                own_ns=whole.own_ns + max(0, min(span.end_ns, stop_ns) - begin_ns),
            )
            counted.add(request)
    return tuple(sorted(found.values(), key=lambda request: -request.length_ns))


def _until_next(own: Sequence[FunctionSpan], start_ns: int, stop_ns: int) -> Iterator[tuple[FunctionSpan, int]]:
    """The spans of one processor within a time, each with the begin of the next one: turns of others lie between."""
    first = max(0, bisect.bisect_right(own, start_ns, key=lambda span: span.start_ns) - 1)
    last = bisect.bisect_left(own, stop_ns, key=lambda span: span.start_ns)
    return zip(own[first:last], [*(span.start_ns for span in own[first + 1 : last]), stop_ns], strict=False)


Serving = tuple[CalledFunction, RequestKind] | None
"""The outermost call that serves a request, and the kind of the request; None if none is served."""


def _serving(known: dict[CalledFunction, Serving], call: CalledFunction) -> Serving:
    """What a call serves. ``known``: of the calls that were asked for, and of those around them."""
    unknown: list[CalledFunction] = []
    node: CalledFunction | None = call
    while node is not None and node not in known:
        unknown.append(node)
        node = node.parent
    found = known[node] if node is not None else None
    for each in reversed(unknown):
        name = each.name.partition(".")[0]
        kind = _kind_served_by(name)
        if kind is not None and (found is None or found[1] is not kind):
            found = each, kind
        elif kind is None and (is_interrupt(each.name) or _ENDS.fullmatch(name)):
            found = None
        known[each] = found
    return found


@functools.cache
def _kind_served_by(name: str) -> RequestKind | None:
    return next((kind for kind in KINDS if kind.served_by.fullmatch(name)), None)


@dataclass(frozen=True, eq=False)
class _Request:
    """One request that a processor served. ``before_ns``: when it began to serve the one before of this kind."""

    kind: RequestKind
    cpu: int
    begin_ns: int
    before_ns: int


def _served_requests(
    spans: Sequence[FunctionSpan], serving: Callable[[CalledFunction], Serving]
) -> dict[Serving, _Request]:
    latest_ns: dict[tuple[RequestKind, int], int] = {}
    found: dict[Serving, _Request] = {}
    for span in spans:
        served = serving(span.call)
        if served is not None and served not in found:
            key = served[1], span.cpu
            found[served] = _Request(*key, span.start_ns, latest_ns.get(key, spans[0].start_ns))
            latest_ns[key] = span.start_ns
    return found


def _senders(spans: Sequence[FunctionSpan], request: _Request) -> tuple[RequestSender, ...]:
    """Who may have sent a request: the last of each processor since the request before; else the last one of all."""
    last = {span.cpu: span for span in _sending(spans, request)}
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
