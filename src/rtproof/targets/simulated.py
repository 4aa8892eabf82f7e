# SPDX-License-Identifier: Apache-2.0
"""No machine at all: a seeded process, played in fast time as if an agent measured it.

The truth about a simulated run is known, so it can test what rtproof says about runs. Its figures are of no machine.
The first run has the seed that is asked for, and each further run the next seed, because runs of one system differ.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rtproof.simulation import simulated_agent, simulated_thread
from rtproof.targets.local import LocalProcess, LocalTarget

OPTIONS: dict[str, str] = simulated_thread.PROCESS_OPTIONS
START = (
    "import sys; sys.path[:] = {path!r}; "
    "from rtproof.simulation.simulated_agent import main; sys.exit(main(sys.argv[1:]))"
)


class SimulatedTarget(LocalTarget):
    """A target that writes its record here. It always runs the simulated agent, whatever program it is given."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._seed = simulated_thread.parse_process(options).seed

    def machine(self) -> str:
        return simulated_agent.MACHINE

    def host_name(self) -> str:
        return simulated_agent.MACHINE

    def own_agent(self) -> Path:
        """The program that is used in place of the agent."""
        return Path(simulated_agent.__file__)

    def start(self, arguments: Sequence[str]) -> LocalProcess:
        program = (sys.executable, "-c", START.format(path=sys.path))
        options = {**self._options, "seed": str(self._seed)}
        self._seed += 1
        words = (f"{key}={value}" for key, value in options.items())
        return super().start((*program, *arguments[1:], simulated_agent.SIMULATE_OPTION, *words))


@contextmanager
def open_target(options: dict[str, str]) -> Iterator[SimulatedTarget]:
    """The simulated target. UserError if the options do not describe a possible process."""
    simulated_thread.parse_process(options)
    yield SimulatedTarget(options)
