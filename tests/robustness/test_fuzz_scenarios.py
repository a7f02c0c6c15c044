"""Scenarios made by the grammar of the schema and by mutation: what is accepted keeps the laws."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from specplan.results.prediction import predict_answer
from specplan.results.simulation import simulate_answer
from specplan.results.store import dumps
from specplan.scenarios.closed_form import operating_point, predict_at
from specplan.scenarios.load import override, schema_json, validated
from specplan.scenarios.source import parse_source
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from tests.robustness.conftest import Fuzz

    from specplan.scenarios.schema import Scenario
    from specplan.sim.records import Run

SIMULATED_TOKENS = 100_000  # largest run that is simulated here
SCHEMA = schema_json()
# Blocks of which one alternative is written.
CHOICES = {"AcceptanceBlock", "CostBlock", "Arrivals", "Lengths", "Policy", "Warmup"}


@dataclass(frozen=True)
class Grammar:
    """Draws what the JSON Schema allows."""

    luck: random.Random
    odd: Sequence[Any]

    def written(self, schema: dict[str, Any], name: str = "") -> Any:
        """Draw a value that a part of the JSON Schema allows, often near its edges."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self.written(SCHEMA["$defs"][name], name)
        if "anyOf" in schema:
            kinds = [one for one in schema["anyOf"] if one.get("type") != "null"]
            return self.written(self.luck.choice(kinds), name)
        if "enum" in schema:
            return self.luck.choice(schema["enum"])
        if "pattern" in schema:
            return self.quantity(schema["pattern"])
        match schema.get("type"):
            case "object":
                return self.block(schema, name)
            case "array":
                few = schema.get("minItems", 0)
                most = max(few, min(schema.get("maxItems", 5), 5))
                items = schema.get("prefixItems") or [schema["items"]] * self.luck.randint(
                    few, most
                )
                return [self.written(item) for item in items]
            case "boolean":
                return self.luck.random() < 0.5
            case "integer" | "number":
                return self.amount(schema)
            case "string":
                return self.luck.choice(["x", "h100-sxm", "no-such-file", "", "α β"])
        return self.luck.choice(self.odd)

    def block(self, schema: dict[str, Any], name: str) -> dict[str, Any]:
        fields = schema.get("properties", {})
        if not fields:
            inner = schema.get("additionalProperties")
            inner = inner if isinstance(inner, dict) else {"type": "string"}
            return {key: self.written(inner) for key in self.luck.sample(["a", "chat", "code"], 2)}
        chosen = set(schema.get("required", ()))
        if name in CHOICES:
            chosen.add(self.luck.choice([key for key, field in fields.items() if nullable(field)]))
        chosen |= {key for key in fields if self.luck.random() < (0.05 if name in CHOICES else 0.2)}
        return {key: self.written(fields[key]) for key in fields if key in chosen}

    def amount(self, schema: dict[str, Any]) -> float:
        least = schema.get("minimum", schema.get("exclusiveMinimum", -2))
        most = schema.get("maximum", schema.get("exclusiveMaximum", 1000))
        whole = schema["type"] == "integer"
        drawn = self.luck.choice(
            [least, most, 1, 2, 3, 8, 0.5, 0.99, self.luck.uniform(least, min(most, 50))]
        )
        return int(drawn) if whole else float(drawn)

    def quantity(self, pattern: str) -> str:
        number = self.luck.choice(
            ["0", "1", "20", "0.5", "1e-3", "7.25", "1e4", f"{self.luck.random():.4g}"]
        )
        if "ns|us" in pattern:
            return f"{number} {self.luck.choice(['us', 'ms', 'ms', 's'])}"
        return number + ("/s" if "/" in pattern else " %" if "%" in pattern else " GiB")


def nullable(field: dict[str, Any]) -> bool:
    return any(one.get("type") == "null" for one in field.get("anyOf", ()))


def mutated(fuzz: Fuzz, grammar: Grammar) -> dict[str, Any]:
    """Replace blocks of a bundled scenario by others that the schema allows, or by anything."""
    luck = grammar.luck
    data: dict[str, Any] = json.loads(fuzz.plain(luck.choice(fuzz.names)))
    workload = data.setdefault("workload", {})
    if luck.random() < 0.9 and isinstance(workload, dict):
        workload["requests"] = luck.randint(1, 60)
        if luck.random() < 0.8:
            workload["output_tokens"] = luck.choice([1, 2, 7, {"uniform": [1, 40]}])
    for _ in range(luck.choice([0, 1, 1, 2, 3, 5])):
        holder, schema = data, SCHEMA
        while True:
            key = luck.choice(sorted(schema["properties"]))
            field = schema["properties"][key]
            inner = next(
                (one for one in (field, *field.get("anyOf", ())) if "$ref" in one), {"$ref": ""}
            )
            below = SCHEMA["$defs"].get(inner["$ref"].rpartition("/")[2], {})
            if "properties" not in below or luck.random() < 0.3:
                break
            if not isinstance(holder.get(key), dict):
                holder[key] = {}
            holder, schema = holder[key], below
        holder[key] = luck.choice(fuzz.odd) if luck.random() < 0.2 else grammar.written(field)
    return data


def hold(scenario: Scenario) -> None:
    """Hold what is true of every closed form: bounds of τ and of the speedup."""
    point = operating_point(scenario)
    found = predict_at(scenario, point)
    tokens, gamma = float(found.tokens_per_round), int(found.gamma)
    assert 1 - 1e-9 <= tokens <= gamma + 1 + 1e-9
    assert float(found.speedup) <= tokens / float(found.round_cost_ratio) * (1 + 1e-9)
    assert 0 < point.batch <= scenario.scheduler.max_num_seqs
    answer = predict_answer(scenario, None, force=False)
    json.loads(dumps(answer.json))


def small(scenario: Scenario) -> bool:
    """Tell whether a run is short enough for this test."""
    if scenario.workload.arrivals.trace or scenario.workload.lengths:
        return False
    kinds = scenario.workload.classes
    lengths = [scenario.prompt_tokens, scenario.output_tokens]
    lengths += [length for kind in kinds for length in (kind.prompt_tokens, kind.output_tokens)
                if length is not None]  # fmt: skip
    longest = sum(int(length.tokens(np.array([0.999]))[0]) for length in lengths)
    return (scenario.workload.requests or 1000) * longest < SIMULATED_TOKENS


def conserved(run: Run) -> None:
    """Hold tokens, time, Little's law and work of a run."""
    done = run.requests
    assert set(done["status"]) <= {0, 1, 2}
    if run.preemptions == 0 and not done["status"].any():
        first = (done["prompt_tokens"] > 0).astype(int)
        made = done["rounds"] + done["accepted_tokens"] + first
        np.testing.assert_array_equal(made, done["output_tokens"])
        served_s = (done["finish_s"] - done["admitted_s"]).sum()
        inside_s = np.arange(len(run.batch_time_s)) @ run.batch_time_s
        assert inside_s == pytest.approx(served_s, rel=1e-6, abs=1e-9 * run.duration_s)
    assert 0 <= run.accepted_tokens <= run.drafted_tokens
    finished = done["status"] == 0
    assert (done["admitted_s"] >= done["arrival_s"])[finished].all()
    assert (done["finish_s"] >= done["first_token_s"])[finished].all()
    for phases in run.phases.values():
        assert min(phases.values()) >= 0
        lasted_s = sum(phases.values())
        assert lasted_s >= run.duration_s * (1 - 1e-6)
        if not done["status"].any():  # else the last pass may outlast the client that gave up
            assert lasted_s == pytest.approx(run.duration_s, rel=1e-6, abs=1e-12)


def test_scenarios_of_the_schema_and_mutations_of_the_bundled_ones(fuzz: Fuzz) -> None:
    grammar = Grammar(fuzz.luck("scenarios"), fuzz.odd)
    accepted = simulated = 0
    for number in range(fuzz.inputs // 2):
        data = grammar.block(SCHEMA, "") if number % 8 == 0 else mutated(fuzz, grammar)
        text = json.dumps(data)
        with fuzz.bounded(text):
            scenario = validated(parse_source(text, "fuzz"))
            accepted += 1
            with fuzz.bounded(text):
                hold(scenario)
            if number % 4 and small(scenario):
                run = simulate(scenario)
                simulated += 1
                conserved(run)
            elif small(scenario):
                dumps(simulate_answer(scenario, None, force=False).json)
    assert accepted > fuzz.inputs // 20
    assert simulated > fuzz.inputs // 100


def test_closed_form_and_simulation_are_equal_where_both_apply(fuzz: Fuzz) -> None:
    """One stream without luck (α 0 or 1) at constant costs: every request takes the recursion."""
    luck = fuzz.luck("equal")
    for _ in range(max(fuzz.inputs // 60, 20)):
        gamma, output = luck.randint(0, 9), luck.randint(1, 60)
        sets = [
            f"target.round={luck.randint(1, 40)} ms", f"target.step={luck.randint(1, 40)} ms",
            f"draft.step={luck.randint(0, 9)} ms", f"speculation.gamma={gamma}",
            f"speculation.overhead={luck.randint(0, 3)} ms", "workload.requests=3",
            f"speculation.acceptance.alpha={luck.randint(0, 1)}",
            f"workload.output_tokens={output}",
            f"speculation.extra_draft_step={luck.choice(['true', 'false'])}",
            f"speculation.method={luck.choice(['draft_model', 'one_pass'])}",
        ]  # fmt: skip
        with fuzz.bounded(sets):
            scenario = override(validated(parse_source(fuzz.plain("toy-20ms"), "toy")), sets)
            expected_s = float(predict_at(scenario, operating_point(scenario)).generation_s)
            done = simulate(scenario).requests
            lasted_s = done["finish_s"] - done["admitted_s"]
            np.testing.assert_allclose(lasted_s, expected_s, rtol=1e-12, err_msg=str(sets))
