"""Print pip constraints that pin every dependency of pyproject.toml to its lower bound."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text("utf-8"))[
    "project"
]
extras = project["optional-dependencies"].values()
for requirement in [*project["dependencies"], *(one for extra in extras for one in extra)]:
    print(re.sub(r"\s*>=\s*", "==", requirement))  # noqa: T201
