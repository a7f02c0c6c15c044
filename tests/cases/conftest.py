"""What the tests of reports share: `calibrate` on typed lines, as a user would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specplan.results.calibrate.answer import calibrate_answer

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def answered() -> Callable[..., dict[str, Any]]:
    """Give the JSON of `calibrate --point … --baseline …`."""

    def answer(*points: str, baseline: str = "") -> dict[str, Any]:
        return calibrate_answer(points=points, baseline=baseline).json

    return answer


@pytest.fixture(scope="session")
def group(answered: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Give the one group of what `calibrate` answers."""

    def only(*points: str, baseline: str = "") -> dict[str, Any]:
        found: list[dict[str, Any]] = answered(*points, baseline=baseline)["groups"]
        assert len(found) == 1
        return found[0]

    return only
