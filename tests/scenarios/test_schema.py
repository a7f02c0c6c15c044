"""The schema itself: every field is described, and JSON Schema admits what the loader admits."""

import json

import numpy as np
import pytest
from pydantic import BaseModel, ValidationError

from specplan.scenarios.load import bundled, published, schema_json
from specplan.scenarios.overrides import block_at
from specplan.scenarios.schema import Scenario
from specplan.scenarios.schema_memory import KvCache
from specplan.scenarios.schema_serving import Slo
from specplan.scenarios.schema_tree import Tree
from specplan.scenarios.schema_workload import Lengths
from specplan.scenarios.source import parse_source
from specplan.scenarios.starter import starter


def blocks(block: type[BaseModel], path: tuple[str, ...] = ()) -> dict[type[BaseModel], str]:
    found = {block: ".".join(path)}
    for name in block.model_fields:
        inner = block_at((*path, name))
        if inner is not None and inner not in found and len(path) < 6:
            found |= blocks(inner, (*path, name))
    return found


def test_every_field_is_described() -> None:
    for block, path in blocks(Scenario).items():
        for name, field in block.model_fields.items():
            assert field.description, f"{path}.{name}"
            assert field.description.endswith((".", "?", ")", "…")), f"{path}.{name}"


def test_json_schema_is_plain_json_with_short_forms() -> None:
    schema = json.loads(json.dumps(schema_json()))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False
    cost = schema["$defs"]["CostBlock"]["anyOf"]
    assert "20 ms" in cost[0]["examples"]
    assert {"enum": ["trace"]} in schema["$defs"]["Lengths"]["anyOf"]
    assert schema["$defs"]["Workload"]["properties"]["classes"]["type"] == "object"
    seed = schema["properties"]["seed"]
    assert (seed["minimum"], "ge" in seed) == (0, False)  # the name that editors know


@pytest.mark.parametrize("name", sorted({**bundled(), **published(), "init": None}))
def test_an_editor_accepts_what_we_wrote(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema (`--group dev`)")
    files = {**bundled(), **published()}
    text = files[name].read_text(encoding="utf-8") if name in files else starter()
    data = parse_source(text, name).data
    validator = jsonschema.Draft202012Validator(schema_json())
    validator.validate(data)
    for path, wrong in (("speculation", {"gama": 3}), ("seed", -1), ("target", {"round": "20"})):
        assert not validator.is_valid({**data, path: wrong}), path


def test_scenarios_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Tree(width=2, depth=2).width = 3


def test_trees() -> None:
    tree = Tree.model_validate({"width": 2, "depth": 2})
    assert tree.paths() == ((0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1))
    for bad in (
        *({"nodes": [[0, 0]]}, {"nodes": [[0], [0]]}, {"width": 2}, {"width": 9, "depth": 9}),
        *({"budget": 1}, {"budget": 257}, {"budget": 8, "width": 2}, {"depth": 3}),
    ):
        with pytest.raises(ValidationError):
            Tree.model_validate(bad)


def test_lengths_by_inverse_transform() -> None:
    u = (np.arange(200_000) + 0.5) / 200_000
    uniform = Lengths.model_validate({"uniform": [10, 20]}).tokens(u)
    assert (uniform.min(), uniform.max(), uniform.mean()) == (10, 20, pytest.approx(15))
    lognormal = Lengths.model_validate({"lognormal": {"mean": 211, "sigma": 0.84}}).tokens(u)
    assert lognormal.mean() == pytest.approx(211, rel=0.002)
    assert Lengths.model_validate({"choice": [5, 7]}).tokens([0.4, 0.6]).tolist() == [5, 7]
    assert Lengths.model_validate(128).tokens([0.1]).tolist() == [128]


def test_kv_capacity_in_blocks() -> None:
    # 1 GiB at 128 KiB a token is 8192 tokens, 512 blocks of 16.
    cache = KvCache.model_validate({"memory": "1 GiB", "bytes_per_token": "128 KiB"})
    assert cache.capacity_blocks(draft_on_gpu=False) == 512
    drafting = cache.model_copy(
        update={"draft_bytes_per_token": 128 * 1024, "draft_weights": 2.0**29}
    )
    assert drafting.capacity_blocks(draft_on_gpu=True) == 128
    for bad in (
        {"blocks": 3, "tokens": 48},
        {"memory": "1 GiB"},
        {"tokens": 48, "model": "a.json"},
        {"tokens": 48, "draft_weights": "1 GB"},
        {"blocks": 3, "plain_tokens": 48},
        {"utilization": 0},
    ):
        with pytest.raises(ValidationError):
            KvCache.model_validate(bad)


def test_slo_names() -> None:
    slo = Slo.model_validate({"ttft_p99": "500 ms", "tpot": "40 ms", "itl_mean": "9 ms"})
    assert slo.request_limits() == {"ttft": 0.5, "tpot": 0.04}
    assert slo.targets() == {"ttft_p99": 0.5, "itl_mean": 0.009}
