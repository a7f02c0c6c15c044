"""`specplan acceptance import`: what goes to stdout, what to stderr, and the exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LINE = (
    "INFO 09-30 02:56:46 [metrics.py:96] SpecDecoding metrics: Mean acceptance length: 2.87, "
    "Accepted: 489 tokens, Drafted: 1572 tokens, Per-position acceptance rate: 0.740, 0.473, "
    "0.309, 0.187, 0.099, 0.057, Avg Draft acceptance rate: 31.1%\n"
)


def scrape(drafts: int, accepted: int) -> str:
    return (
        f'vllm:spec_decode_num_drafts_total{{model_name="m"}} {drafts}\n'
        f'vllm:spec_decode_num_draft_tokens_total{{model_name="m"}} {3 * drafts}\n'
        f'vllm:spec_decode_num_accepted_tokens_total{{model_name="m"}} {accepted}\n'
    )


def test_stdout_is_the_block(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LINE)
    done = specplan_cli("acceptance", "import", str(tmp_path / "a.log"))
    assert YAML(typ="safe").load(done.out)["speculation"]["gamma"] == 6
    assert "τ 2.866 tokens per round" in done.err


def test_delta_of_two_scrapes(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "before").write_text(scrape(10, 20))
    (tmp_path / "after").write_text(scrape(1010, 1520))
    paths = [str(tmp_path / "before"), str(tmp_path / "after")]
    (group,) = specplan_cli("acceptance", "import", *paths, "--delta", "--json").json["groups"]
    assert group["drafting_rounds"] == 1000
    assert group["acceptance_length"] == 2.5


def test_one_sentence_for_each_bad_file(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    (tmp_path / "text").write_text("hello\n")
    paths = [str(tmp_path / "empty"), str(tmp_path / "text")]
    done = specplan_cli("acceptance", "import", *paths)
    assert done.code == 2
    assert len(done.err.splitlines()) == 2
    assert not done.out


def test_no_acceptance_is_a_no(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"completed": 1, "mean_tpot_ms": 6.43}')
    done = specplan_cli("acceptance", "import", str(tmp_path / "run.json"))
    assert done.code == 1
    assert "Latencies only, no acceptance" in done.out
