"""`specplan acceptance import`: runs that do not agree are not pooled in silence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(("second", "warns"), [(12000, True), (8200, False)])
def test_the_tau_of_each_run_is_shown(
    specplan_cli: Callable[..., Any], tmp_path: Path, second: int, warns: bool
) -> None:
    files = []
    for number, accepted in enumerate((8000, second)):
        run = {  # `vllm bench serve`: 8,000 rounds of 3 drafts
            "completed": 100,
            "total_output_tokens": 20000,
            "max_concurrency": 1 + 99 * number,
            "spec_decode_acceptance_rate": 100 * accepted / 24000,
            "spec_decode_acceptance_length": 1 + accepted / 8000,
            "spec_decode_num_drafts": 8000,
            "spec_decode_draft_tokens": 24000,
            "spec_decode_accepted_tokens": accepted,
        }
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps(run))
    found = specplan_cli("acceptance", "import", *map(str, files))
    said = " ".join(found.out.split())
    assert "τ 2" in said
    assert f"τ {1 + second / 8000:.4g}" in said
    assert ("lies between 2 and 2.5" in found.err) is warns
    assert ("note: τ of the 2 runs lies between" in said) is warns
