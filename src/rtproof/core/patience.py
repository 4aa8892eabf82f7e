# SPDX-License-Identifier: Apache-2.0
"""How long to go on trying to reach a target that is out of reach, and what to say meanwhile."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from rtproof.core.errors import LinkError
from rtproof.core.printable import clean

Result = TypeVar("Result")
USUAL = "10min"
PAUSES_S = (1, 2, 4, 8, 15)
"""Between two tries; the last one again and again."""


@dataclass
class Patience:
    """name: of the target; seconds: how long to go on; meanwhile: what becomes of the run until then."""

    name: str
    seconds: float
    meanwhile: str = "the run goes on there"
    _lost_at: float | None = None
    _tries: int = 0

    def lost(self, problem: LinkError, *, give_up: bool = False) -> Iterator[str]:
        """Wait until the next try; a sentence before the first. LinkError once patience ends, or with give_up."""
        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at = now
            yield clean(f"rtproof: no connection to {self.name} ({problem}); {self.meanwhile}")
        if give_up or now - self._lost_at > self.seconds:
            raise LinkError(f"no connection to {self.name}: {problem}") from problem
        time.sleep(PAUSES_S[min(self._tries, len(PAUSES_S) - 1)])
        self._tries += 1

    def found(self) -> Iterator[str]:
        """A sentence if the target was out of reach before."""
        if self._lost_at is not None:
            yield f"rtproof: connected to {clean(self.name)} again after {time.monotonic() - self._lost_at:.0f} s"
        self._lost_at, self._tries = None, 0

    def tried(
        self, work: Callable[[], Result], say: Callable[[str], None], give_up: Callable[[], bool] = lambda: False
    ) -> Result:
        """What the work gives, which is tried again after each LinkError. say: takes the sentences."""
        while True:
            try:
                result = work()
            except LinkError as problem:
                for sentence in self.lost(problem, give_up=give_up()):
                    say(sentence)
                continue
            for sentence in self.found():
                say(sentence)
            return result
