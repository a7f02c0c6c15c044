"""What the fuzz tests share: how many inputs, their luck, and what may come of one of them.

`SPECPLAN_FUZZ=55000 pytest tests/robustness -k fuzz` is the long mode, with so many inputs over all
entrances; SPECPLAN_FUZZ_SEED gives other inputs. An input that fails is printed with the failure.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import bundled, published
from specplan.scenarios.source import parse_source

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_S = 300  # of one input, on a busy machine that compiles the simulator first
MOST_MEMORY = 2 << 30
# Values that no field wants, and some that a few do.
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, 10**9, 10**30, 1e-300, 1e300, float("inf"), float("nan"),
    0.5, "", "nan", "1e-300 s", "1e300 s", "20 ms", "20", "-3 us", "4/s", "inf", "1e9/s", "80 %",
    "4 GiB", "0 GiB", "trace", "/dev/zero", "/dev/stdin", ".", "\0", "\u0661", "x" * 3000, [], {},
    [[]], [1, 2], [0.5, 0.6], [[1, 8, 5]], {"alpha": 0.5}, {"a": {"a": {}}}, [0.1] * 2000,
)  # fmt: skip
PIECES = (
    ":", "\n", "  ", "- ", "&a ", "*a", "!!x ", "{", "}", "[", "]", "'", "#", "\t", "\r", "\0",
    "\ufeff", "é", ",", "-", "1e999", "NaN", "9" * 30, "<<: ", "? ", "| ", "%",
)  # fmt: skip


@dataclass(frozen=True)
class Fuzz:
    """One run of the fuzz: `inputs` is the number over all entrances."""

    inputs: int = int(os.environ.get("SPECPLAN_FUZZ", "2400"))
    seed: str = os.environ.get("SPECPLAN_FUZZ_SEED", "")
    odd: tuple[Any, ...] = ODD
    names: tuple[str, ...] = field(default_factory=lambda: tuple({**bundled(), **published()}))

    def luck(self, of: str) -> random.Random:
        """Start the luck of one test."""
        return random.Random(f"{of} {self.seed}")

    @staticmethod
    @cache
    def plain(name: str) -> str:
        """Give a bundled or published scenario as JSON."""
        text = {**published(), **bundled()}[name].read_text(encoding="utf-8")
        return json.dumps(parse_source(text, name).data)

    @staticmethod
    def spoiled(text: str, luck: random.Random) -> str:
        """Change a few characters of a text."""
        for _ in range(luck.choice([1, 1, 2, 4])):
            at = luck.randrange(len(text) + 1)
            text = text[:at] + luck.choice(PIECES) + text[at + luck.choice([0, 0, 1, 3, 30]) :]
        return text

    @staticmethod
    @contextmanager
    def bounded(given: object) -> Iterator[None]:
        """Fail, with the input, for what is no ScenarioError, for a hang, and for much memory."""

        def late(*_: object) -> None:
            raise TimeoutError(f"took longer than {LONGEST_S} s")

        before = signal.signal(signal.SIGALRM, late)
        signal.alarm(LONGEST_S)
        try:
            yield
        except ScenarioError as refused:
            faults = [str(fault) for fault in refused.faults]
            assert faults, given
            assert all("\n" not in one and len(one) < 5000 for one in faults), given
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\ninput: {given!r}") from error
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        assert used < MOST_MEMORY, given


@pytest.fixture(scope="session")
def fuzz() -> Fuzz:
    """How many inputs, and what may come of one."""
    return Fuzz()
