"""`specplan acceptance export`: engine settings that reproduce a scenario's acceptance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from specplan.models.conversions import accepted_law
from specplan.models.rounds import tokens_per_round_variance
from specplan.results.answer import Answer
from specplan.results.tables import verbatim
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.exporters import ENGINES, export
from specplan.scenarios.extrapolated import remarks
from specplan.scenarios.synthetic import Export, wanted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from specplan.scenarios.schema import Scenario

NOTES = [
    "synthetic acceptance keeps the time of drafting and verifying and makes the text meaningless:"
    " ignore EOS, and run no accuracy evaluation with it",
    "the draft's weights do not matter, its size does: any checkpoint with the draft's config, even"
    " untrained, costs the same",
]

OWN_NAME = (
    "an EAGLE or MTP head has a method name of its own, to be put in place of the one here: eagle3"
    " or mtp in vLLM, EAGLE3 or NEXTN in SGLang"
)


def export_answer(
    scenario: Scenario, engine: str | None = None, draft: str | None = None
) -> Answer:
    """Return the settings of one engine, or of every engine, that reproduce the acceptance.

    Each states its bonus convention, the law of the accepted length it will follow, and what that
    changes against the scenario's. Of every engine, those that cannot be told this acceptance are
    listed as refused. Raises ScenarioError without speculation, for an unknown engine, and where no
    engine that was asked for can be told.

    >>> from specplan.scenarios.load import load
    >>> answer = export_answer(load("toy-20ms"), "tensorrt-llm")
    >>> answer.json["exports"][0]["setting"]
    'TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS = 0.75'
    """
    what = wanted(scenario, draft)
    exports: list[Export] = []
    refused: dict[str, str] = {}
    for name in [engine] if engine else ENGINES:
        try:
            exports += export(what, name)
        except ScenarioError as error:
            if engine:
                raise
            refused[name] = str(error)
    json = {
        "scenario": scenario.name,
        "gamma": what.gamma,
        "acceptance_length": what.acceptance_length,
        "unconditional": what.unconditional.tolist(),
        "tokens_per_round_variance": float(tokens_per_round_variance(what.unconditional)),
        "draft_probability": what.draft_probability,
        "exports": [_json(made) for made in exports],
        "refused": refused,
    }
    head = [OWN_NAME] if what.method in {"draft_model", "one_pass"} else []
    notes = [*refused.values(), *NOTES, *head, *remarks(scenario, what.gamma)]
    return Answer(json, _text(json), notes)


def _json(made: Export) -> dict[str, Any]:
    return {
        "engine": made.engine,
        "mode": made.mode,
        "environment": made.environment,
        "arguments": list(made.arguments),
        "config": made.config or None,
        "command": made.command,
        "setting": made.setting,
        "bonus": made.bonus,
        "acceptance_length": made.acceptance_length,
        "unconditional": made.unconditional.tolist(),
        "accepted_length_law": accepted_law(made.unconditional).tolist(),
        "tokens_per_round_variance": made.variance,
        "differences": list(made.differences),
    }


def _text(json: dict[str, Any]) -> RenderableType:
    rates = ", ".join(f"{rate:.4g}" for rate in json["unconditional"])
    parts: list[RenderableType] = [
        Text(
            f"{json['scenario']}: τ {json['acceptance_length']:.4g} at γ {json['gamma']},"
            f" unconditional {rates}, variance {json['tokens_per_round_variance']:.4g}\n"
        )
    ]
    for made in json["exports"]:
        settings = [f"{name}={value}" for name, value in made["environment"].items()]
        shell = " \\\n    ".join([*settings, *made["arguments"]])
        parts.append(verbatim(f"{made['engine']} ({made['mode']})\n    {shell}"))
        if made["config"]:
            parts.append(verbatim(f"    in its YAML: {made['config']}"))
        lines = [f"  bonus: {made['bonus']}"]
        lines += [f"  - {line}" for line in made["differences"]] or ["  - the same law"]
        parts.append(Text("\n".join(lines) + "\n"))
    return Group(*parts)
