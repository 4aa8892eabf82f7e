# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have, and the types of their values. A value that a parser refuses is a usage error.

Only what a command's help and a shell's completion need is here: ``option_values`` reads the values.
"""

import re
import subprocess
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from rtproof.agents import DURATION_DEFAULT
from rtproof.core import units
from rtproof.core.errors import UserError

if TYPE_CHECKING:
    _Base = click.ParamType[Any]
else:
    _Base = click.ParamType  # takes no parameter before click 8.4

Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
USUAL_FOLDER = "runs"
LARGEST_DMA_LATENCY_US = 1_000_000


class ParsedValue(_Base):
    """A parameter whose text one function turns into a value; values that are no text pass through."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except UserError as error:
            self.fail(str(error), param, ctx)


def _length(text: str) -> str:
    return units.format_duration(units.parse_length(text))


def _span(text: str) -> str:
    return units.format_duration(units.parse_duration(text))


def _phase(text: str) -> str:
    if text == "even":
        return text
    try:
        return _span(text)
    except UserError as problem:
        raise UserError(f"{problem}; or write even") from None


def _cpus(text: str) -> str:
    return units.format_cpus(units.parse_cpus(text))


def _dma_latency(text: str) -> str:
    """Microseconds, as the kernel takes them (Documentation/power/pm_qos_interface.rst), also as a duration."""
    if text == "off":
        return text
    try:
        duration_ns = units.parse_duration(text if text.strip("0123456789") else text + "us")
    except UserError as problem:
        raise UserError(f"{problem}; or write off") from None
    if duration_ns % 1_000 or duration_ns > LARGEST_DMA_LATENCY_US * 1_000:
        raise UserError(f"{text!r} is not off or a number of whole microseconds up to {LARGEST_DMA_LATENCY_US}")
    return str(duration_ns // 1_000)


def _option_pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UserError(f"{text!r} is not of the form key=value")
    return key, value


def count_up_to(most: int) -> click.IntRange:
    return click.IntRange(1, most)


LENGTH = ParsedValue("duration", _length)
"""A duration above 0 in its shortest form, for the agent."""
SPAN = ParsedValue("duration", _span)
"""A duration that may be 0 in its shortest form, for the agent."""
CPUS = ParsedValue("cpus", _cpus)


class SectionOption(click.Option):
    """An option that names sections. Its help lists them; only who asks for the help waits for all of them to load."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from rtproof.report.section_list import SECTION_NAMES

        record = super().get_help_record(ctx)
        return record and (record[0], f"{record[1]} Names: {', '.join(SECTION_NAMES)}.")


def new_folder(context: click.Context, parameter: click.Parameter, folder: Path | None) -> Path | None:
    """The value of ``--output DIR``. BadParameter if its parent is missing and is not in USUAL_FOLDER.

    A typing error would otherwise make a tree of folders.
    """
    if folder and not folder.parent.exists() and folder.parts[0] != USUAL_FOLDER:
        raise click.BadParameter(f"there is no folder {folder.parent} to make it in", context, parameter)
    return folder


def folder_option(of_what: str) -> Callable[[Command], Command]:
    text = f"New folder for {of_what} (default: in {USUAL_FOLDER})."
    return option("-o --output DIR", text, PATH, callback=new_folder)


def two_sides(
    context: click.Context, _parameter: click.Parameter, pair: tuple[str, str] | None
) -> tuple[str, str] | None:
    """The value of ``--abba``. UsageError if an option of the command stands where B should be: B was left out."""
    options = {name for each in context.command.params if not getattr(each, "is_flag", False) for name in each.opts}
    if pair and pair[1] in options:
        raise click.UsageError("--abba takes two sets of options, A and B, each in quotes, and B is missing", context)
    return pair


PHASE = ParsedValue("even|duration", _phase)
DMA_LATENCY = ParsedValue("us|off", _dma_latency)
LENGTH_NS = ParsedValue("duration", units.parse_length)
DURATION_NS = ParsedValue("duration", units.parse_duration)
AT_MOST_NS = ParsedValue("1/time|never", units.parse_judged_rate)
RATE_NS = ParsedValue("1/time", units.parse_at_most)
GAP_NS = ParsedValue("duration", units.parse_gap)
LONGEST_NS = ParsedValue("duration", units.parse_longest_episode)
BUNCHES = ParsedValue("number", units.parse_bunches)
CONFIDENCE = ParsedValue("share", units.parse_confidence)
SHARE = ParsedValue("percent", lambda text: float(units.parse_percentage(text)))
"""A percentage as a share from 0 to 1."""
KEY_VALUE = ParsedValue("key=value", _option_pair)


PLUGINS = {
    "export formats": "rtproof.exporters",
    "report formats": "rtproof.report.formats",
    "targets": "rtproof.targets",
}
OF_AGENT = {"methods": ("method", 2), "probes": ("probe", 1), "loads": ("load", 1)}
"""The rows of the agent's list, and the place of the name in them."""
LIST_TIMEOUT_S = 2


def offer(kind: str) -> Callable[..., list[CompletionItem]]:
    """What a shell offers for a value of this kind, for click. It imports what it needs when a shell asks."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in _offered(kind) if word.startswith(incomplete)]

    return complete


def _offered(kind: str) -> list[str]:
    """The words of a kind. Completion must be quick and silent, so an agent is asked only if one has been built."""
    from rtproof import loads, profiles
    from rtproof.core import plugins

    if kind in PLUGINS:
        return plugins.plugin_names(import_module(PLUGINS[kind]))
    if kind == "profiles":
        return profiles.names()
    if kind == "sections":
        from rtproof.report.section_list import SECTION_NAMES

        return list(SECTION_NAMES)
    from rtproof.agents import build

    (row, at), agent = OF_AGENT[kind], build.built_agent()
    of_files = list(loads.names()) if kind == "loads" else []
    if agent is None:
        return of_files
    words = [str(agent), "list"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIST_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return of_files
    return [*of_files, *(each[at] for each in build.listed_rows(done.stdout, row))]


def option(declared: str, text: str, kind: Any = None, complete: str = "", **more: Any) -> Callable[[Command], Command]:
    """An option of a command, as its help shows it, in one line of a table.

    declared: the names; a word in lower letters for the parameter, if it has another name; what stands for the value;
    and "..." if the option may be repeated. Without value and kind it is a flag. complete: for ``offer``.
    """
    words = declared.split()
    if words[-1] == "...":
        words, more = words[:-1], {"multiple": True, **more}
    names = [word for word in words if word.startswith("-") or (word.isidentifier() and word.islower())]
    metavar = " ".join(words[len(names) :])
    if not metavar and kind is None and "/" not in declared:
        more = {"is_flag": True, **more}
    more["shell_complete"] = offer(complete) if complete else None
    return click.option(*names, type=kind, metavar=metavar or None, help=text, **more)


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


JSON_OPTION = option("--json as_json", "Print the result as JSON.")
REPORT_OPTION = option("--report/--no-report", "Write an HTML report (default).", default=True)
TRACE_OPTION = option("--trace [k=v,...]", "Keep the kernel's events.", is_flag=False, flag_value="on")
METHOD_OPTION = option("--method METHOD", "How a thread waits for its due time.", complete="methods")
SAMPLES_OPTION = option("--samples N", "Measure N activations instead of --duration.", count_up_to(2**62))
POLICY_OPTIONS = (
    option("--policy", "Scheduling policy (default fifo).", click.Choice(["fifo", "rr", "other", "deadline"])),
    option("--priority N", "Priority of fifo and rr (default 80).", count_up_to(99)),
)
AGENT_OPTIONS = (
    option("--probe PROBE", "What to measure (default timer).", complete="probes"),
    METHOD_OPTION,
    option("--period", "Time between activations (default 1ms).", LENGTH),
    option("--period-step", "Add this to the period of each further thread.", LENGTH),
    option("--duration", f"How long to measure (default {DURATION_DEFAULT}).", LENGTH),
    SAMPLES_OPTION,
    option("--warmup", "Run this long before measuring (default 1s).", SPAN),
    option("--cpus", "Measure on these CPUs, such as 0,2-3.", CPUS),
    option("--threads N", "Measuring threads (default: one per CPU).", count_up_to(4096)),
    *POLICY_OPTIONS,
    option("--phase", "Offset from thread to thread (default even).", PHASE),
    option("--dma-latency", "Value for /dev/cpu_dma_latency (default 0).", DMA_LATENCY),
    option("--no-lock-memory", "Do not lock the agent's memory."),
    option("--record", "Keep every sample (default) or the summary.", click.Choice(["samples", "summary"])),
    option("--checkpoint", "Write to the disk this often (default 10s).", LENGTH),
    option("--load LOAD ...", "Disturb by this load (see 'rtproof loads'); repeatable.", complete="loads"),
    TRACE_OPTION,
    option("--trace-blocks", "Switch tracing on and off, each for this long.", LENGTH),
    option("--allow-unprivileged", "Measure SCHED_OTHER if --policy is not allowed."),
)
UNTIL_OPTIONS = (
    option("--until-decided", "Stop when the verdict on --limit is certain."),
    option("--max-duration", "Stop --until-decided after this time.", LENGTH),
)
OBSERVER_OPTION = option("--observer/--no-observer", "Measure what tracing adds to the latency.", default=None)
EXPLAIN_OPTION = option("--explain [k=v,...]", "Say why activations were late.", is_flag=False, flag_value="on")
LIMIT_OPTIONS = (
    option("--limit limits ...", "Latency never to exceed, such as 500us; repeatable.", LENGTH_NS),
    option("--at-most ...", "Allow episodes above --limit, such as 1/h.", AT_MOST_NS),
    option("--shows", "The rate that --until-decided must show (default 1/h).", RATE_NS),
    option("--confidence", "Confidence of the verdict (default 0.95).", CONFIDENCE),
    option("--gap", "Late times no further apart are one episode.", GAP_NS),
    option("--longest", "Longest episode that --at-most allows.", LONGEST_NS),
    option("--bunches", "Let episodes come N at a time (default 1).", BUNCHES),
)
PERCENTILE_OPTION = option("--percentile percentiles ...", "A further percentile to show; repeatable.", SHARE)
"""Option of every command that shows numbers."""
UNIT_OPTION = option("--unit", "State the unit of cyclictest's text (-N: ns).", click.Choice(["us", "ns"]))
SECTION_OPTION = option(
    "--section sections SECTION ...", "Only this section; repeatable.", complete="sections", cls=SectionOption
)
"""Option of every command that prints sections of a report."""
HORIZON_OPTION = option("--horizon", "How far the forecast looks, such as 30d.", LENGTH_NS)

MOST_SEED = 2**32 - 1
REPEAT_OPTIONS = (
    option("--repeat N", "Measure N times, or each side of --abba.", click.IntRange(1, 999)),
    option("--abba 'A' 'B'", "Compare two sets of options, taken in turn.", (str, str), callback=two_sides),
    option("--order-seed N", "Draw the turns of --abba from N.", click.IntRange(0, MOST_SEED)),
)
SET_OPTION = option("--set settings ...", "Choose what the profile measures; repeatable.", KEY_VALUE)
PROFILE_OPTIONS = (
    option("--profile NAME|FILE", "Repeat an experiment of 'rtproof profiles'.", complete="profiles"),
    SET_OPTION,
    option("--given FILE ...", "Add another tool's result; repeatable.", PATH),
)
GENERATOR_OPTIONS = (
    option("--generator TARGET", "The board that gives the edges for --probe gpio.", complete="targets"),
    option("--generator-option ...", "An option of --generator; repeatable.", KEY_VALUE),
    option("--generator-lines LINES", "Lines of --generator: chip=0,in=5,out=6."),
)


def target_options(to_do: str) -> Callable[[Command], Command]:
    """target, target_option and agent. to_do: what is done on the target."""
    where = f"Where to {to_do} (default local)."
    return with_options(
        option("--target TARGET", where, complete="targets", default="local"),
        option("--target-option ...", "An option of --target; repeatable.", KEY_VALUE),
        option("--agent FILE", "Use this agent.", PATH),
    )


def format_option(usual: str) -> Callable[[Command], Command]:
    """The option ``--format`` of pages. usual: the format of a page for which none is named."""
    marked = (" (default)" if usual == name else "" for name in ("html", "text"))
    text = "Format: html{}, markdown or text{}.".format(*marked)
    return option("--format form FORMAT", text, complete="report formats")


def page_options(beside: str) -> Callable[[Command], Command]:
    """output, form, report and as_json. beside: the name of the argument that the page goes beside."""
    output = option("-o --output FILE", f"New file for the page (default: beside {beside}).", PATH)
    return with_options(output, format_option("html"), REPORT_OPTION, JSON_OPTION)


# Of the commands of ``rtproof lab``.

DEBIAN_KERNELS = ("debian-6.1-rt", "debian-6.1")
PREEMPTION = click.Choice(["none", "voluntary", "full", "lazy"])
KERNEL_HELP = "NAME of 'lab kernels', or IMAGE[:MODULES]"
LOAD_HELP = "Disturb by this load, such as mmap@0 or dd+net"
KERNELS_OPTION = option("--kernel kernels NAME|IMAGE ...", f"{KERNEL_HELP}; repeatable.", default=DEBIAN_KERNELS)


PREEMPTS = ("--preempt preempts ...", "Preemption model; repeatable.", PREEMPTION)
"""Of an option whose values each make a system of each kernel."""
OWN_MODULE_OPTION = option("--module FILE ...", "rtproof.ko for an IMAGE; repeatable.", PATH)
LAB_MEASUREMENT_OPTIONS = (
    option("--probe PROBE", "What to measure (default timer).", default="timer"),
    METHOD_OPTION,
    option("--period", "Time between activations (default 1ms).", LENGTH, default="1ms"),
    option("--duration", "How long to measure (default 2s, virtual time).", LENGTH, default="2s"),
    option("--warmup", "Run this long before measuring (default 1s).", SPAN, default="1s"),
    *POLICY_OPTIONS,
    option("--module FILE ...", "Load this kernel module first; repeatable.", PATH),
)


def _named_qemu(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """The text. BadParameter for an empty one, as of a shell's variable that is not set."""
    if text is not None and not text.strip():
        raise click.BadParameter("it is empty: give system, fetched, or a path", ctx, param)
    return text


PROCESSOR_OPTIONS = (
    option("--processors cpus N", "Processors of the guest (default 1).", click.IntRange(1, 8), default=1),
    option("--measured-cpus CPUS", "Measure on these CPUs of the guest."),
    option("--pace pace_us US", "Longest turn of a processor (default 4).", click.IntRange(1, 1000)),
    option("--soakers/--no-soakers", "Keep all processors busy (default).", default=None),
    option("--qemu system|fetched|PATH", "The QEMU to use (default: one that fits).", callback=_named_qemu),
)
"""What the guest's processors are. With one processor, nothing of it changes a guest but another QEMU."""


def _shell_lines(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The lines that are not blank. BadParameter for one that cannot be written to the guest's script."""
    for text in texts:
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise click.BadParameter("it is not UTF-8", ctx, param)
    return tuple(text for text in texts if text.strip())


JOBS_OPTION = option("--jobs N", "Guests at once (default: one per CPU).", count_up_to(1024))
LAB_OUTPUT_OPTIONS = (folder_option("all results"), JSON_OPTION)
LAB_CELL_OPTIONS = (
    *PROCESSOR_OPTIONS,
    *LAB_MEASUREMENT_OPTIONS,
    option("--setup 'COMMANDS' ...", "Run these in the guest's shell first; repeatable.", callback=_shell_lines),
    option("--shifts N", "Measure each cell N times (default 4).", count_up_to(1000), default=4),
    JOBS_OPTION,
)
"""How cells are measured, where the user names kernels and loads."""
ONE_CELL_OPTIONS = (
    option("--kernel NAME|IMAGE", f"{KERNEL_HELP}.", required=True),
    option("--preempt", "Preemption model.", PREEMPTION),
    option("--load LOAD", f"{LOAD_HELP}.", complete="loads", default="idle"),
    option("--boot 'ARG ...'", "Arguments of the kernel, as one word.", default=""),
    *LAB_CELL_OPTIONS,
)
"""Of commands that measure one kernel under one load."""


def of_one_cell(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of such a command as those of ``rtproof lab compare``, which takes several of each."""
    several = {f"{name}s": [values[name]] for name in ("kernel", "boot", "load")}
    return {**values, **several, "preempts": [values["preempt"]] if values["preempt"] else []}


# Help that lists the options of a command under headings. An option has the same heading in every command.


HEADINGS = {
    "What to measure": (
        "--probe --method --period --period-step --interval --distance --cpus --affinity --threads --smp --policy "
        "--priority --phase --dma-latency --latency --laptop --no-lock-memory --mlockall --allow-unprivileged "
        "--nanosleep --pid --thread --begin --end --for --aligned --secaligned --clock --default-system --mainaffinity "
        "--priospread --relative --resolution --system --posix_timers"
    ),
    "How long, and when to stop": (
        "--duration --samples --loops --warmup --until-decided --max-duration --keep-mib --breaktrace --budget "
        "--run-length"
    ),
    "The limit": (
        "--limit --max --at-most --shows --confidence --gap --longest --bunches --fixed-beforehand --measured-for "
        "--unit --horizon --fail-on --explain-at-most --strict --bisect"
    ),
    "Disturb": "--load",
    "Explain": "--explain --stacks --top --trace --trace-blocks --observer",
    "Where": (
        "--target --target-option --agent --detach --stream --generator --generator-option --generator-lines "
        "--kernel --preempt --boot --setup --module --processors --measured-cpus --pace --soakers --qemu --jobs "
        "--cmdline --kernel-config --sysctl --proc-dump --reboot"
    ),
    "Repeat and compare": "--profile --set --given --repeat --abba --order-seed --shifts --knobs --seed",
    "Output": (
        "--output --json --junit --markdown --verbose --quiet --report --format --section --percentile --histogram "
        "--all --nsecs --record --checkpoint --note --list --help --histofall --histfile --fifo "
        "--refresh_on_max --oscope --spike --spike-nodes --smi --tracemark --unbuffered --dbg_cyclictest"
    ),
}
HEADING_OF = {name: heading for heading, names in HEADINGS.items() for name in names.split()}
MOST_USED = "Most used"
NAME_COLUMNS = 26
"""The texts of all headings begin in one column; a longer name stands on a line of its own."""
_RANGE = re.compile(r"  \[1<=x<=\d+\]$")
"""What click adds for a count. The refusal of a number outside names the range, too."""


class GroupedCommand(click.Command):
    """A command with many options. most_used: those of its options that its help lists first."""

    def __init__(self, *args: Any, most_used: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.most_used = most_used

    def use(self, option: click.Parameter) -> int:
        """The place of an option among the most used ones; all others have the same place behind these."""
        return next((at for at, name in enumerate(self.most_used) if name in option.opts), len(self.most_used))

    def heading(self, option: click.Parameter) -> str:
        """The heading of an option. StopIteration if it has none."""
        if self.use(option) < len(self.most_used):
            return MOST_USED
        return next(HEADING_OF[name] for name in option.opts if name in HEADING_OF)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (MOST_USED, *HEADINGS)}
        for each in sorted(self.get_params(ctx), key=self.use):
            record = each.get_help_record(ctx)
            if record is not None and isinstance(each, click.Option):
                rows[self.heading(each)].append((record[0].ljust(NAME_COLUMNS), _RANGE.sub("", record[1])))
        for heading, listed in rows.items():
            if listed:
                with formatter.section(heading):
                    formatter.write_dl(listed, col_max=NAME_COLUMNS)
