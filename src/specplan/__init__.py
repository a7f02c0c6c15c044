"""Plan speculative decoding before the hardware runs.

The library is what the commands are made of:

>>> import specplan
>>> scenario = specplan.load("toy-20ms")
>>> float(specplan.predict(scenario).speedup.round(9))
1.25

Names are imported when they are first used, so that `import specplan` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specplan.models.speedup import Prediction
    from specplan.results.metrics import summary
    from specplan.results.study import Study, load
    from specplan.scenarios.closed_form import predict
    from specplan.scenarios.errors import Fault, ScenarioError
    from specplan.scenarios.load import bundled, override, to_yaml
    from specplan.scenarios.schema import Scenario
    from specplan.sim.axes import Axis, parse_axis
    from specplan.sim.design import Design, parse_design
    from specplan.sim.records import Run
    from specplan.sim.simulate import simulate
    from specplan.sim.sweep import Grid, predict_grid, simulate_grid

_HOMES = {
    "Axis": "specplan.sim.axes",
    "Design": "specplan.sim.design",
    "Fault": "specplan.scenarios.errors",
    "Grid": "specplan.sim.sweep",
    "Prediction": "specplan.models.speedup",
    "Run": "specplan.sim.records",
    "Scenario": "specplan.scenarios.schema",
    "ScenarioError": "specplan.scenarios.errors",
    "Study": "specplan.results.study",
    "bundled": "specplan.scenarios.load",
    "load": "specplan.results.study",
    "override": "specplan.scenarios.load",
    "parse_axis": "specplan.sim.axes",
    "parse_design": "specplan.sim.design",
    "predict": "specplan.scenarios.closed_form",
    "predict_grid": "specplan.sim.sweep",
    "simulate": "specplan.sim.simulate",
    "simulate_grid": "specplan.sim.sweep",
    "summary": "specplan.results.metrics",
    "to_yaml": "specplan.scenarios.load",
}

__all__ = [
    "Axis",
    "Design",
    "Fault",
    "Grid",
    "Prediction",
    "Run",
    "Scenario",
    "ScenarioError",
    "Study",
    "bundled",
    "load",
    "override",
    "parse_axis",
    "parse_design",
    "predict",
    "predict_grid",
    "simulate",
    "simulate_grid",
    "summary",
    "to_yaml",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
