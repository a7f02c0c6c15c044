"""What a browser asks of the live page when a slider is moved, asked here without a browser."""

from __future__ import annotations

import json
import statistics
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

URL, LOCAL = "/_dash-update-component", {"Host": "localhost"}


class Page:
    """The live page of one scenario, with the parts that its callbacks name."""

    def __init__(self, name: str) -> None:
        from specplan.results.live.app import make_app

        self.client = make_app(name).server.test_client()
        search = f"?scenario={name}"
        self.known: dict[str, Any] = {"url": {"search": search}, "written": {"data": None}}
        listed = self.client.get("/_dash-dependencies", headers=LOCAL).json
        page, self.sliders = (
            next(one for one in listed if one["output"].startswith(start))
            for start in ("page.children", "..written.data")
        )
        shown = self._ask(page, {"id": "page", "property": "children"})
        self.parts = list(_parts(shown["response"]["page"]["children"]))

    def move(self, step: int) -> float:
        """Move the first slider by so many steps; seconds until every figure has come."""
        outputs = [self._places(one) for one in self.sliders["output"].strip(".").split("...")]
        slider = next(part for part in self.parts if "control" in part.get("id", ""))
        slider["value"] = str(float(slider["value"]) + step * slider["step"])
        begun = time.perf_counter()
        found = self._ask(self.sliders, outputs)
        seconds = time.perf_counter() - begun
        if not any("figure" in part for part in found["response"].values()):
            raise RuntimeError(f"no figure came: {found}")
        return seconds

    def _ask(self, callback: dict[str, Any], outputs: Any) -> Any:
        body = {"output": callback["output"], "outputs": outputs, "changedPropIds": []}
        for kind in ("inputs", "state"):
            body[kind] = [
                self._places(f"{one['id']}.{one['property']}", values=True)
                for one in callback[kind]
            ]
        answer = self.client.post(URL, headers=LOCAL, json=body)
        if answer.status_code != 200:
            raise RuntimeError(f"{answer.status}: {answer.text[:200]}")
        return answer.json

    def _places(self, named: str, *, values: bool = False) -> Any:
        """Find what an `id.property` of a callback stands for: one part, or all that match."""
        name, _, prop = named.rpartition(".")
        if not name.startswith("{"):
            place = {"id": name, "property": prop}
            return {**place, "value": self._value(name, prop)} if values else place
        wanted = json.loads(name)
        return [
            {"id": part["id"], "property": prop, **({"value": part.get(prop)} if values else {})}
            for part in self.parts
            if isinstance(part.get("id"), dict)
            and part["id"].keys() == wanted.keys()
            and all(asked == ["ALL"] or part["id"][key] == asked for key, asked in wanted.items())
        ]

    def _value(self, name: str, prop: str) -> Any:
        if name in self.known:
            return self.known[name][prop]
        return next(part for part in self.parts if part.get("id") == name).get(prop)


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    """List the properties of every component below one."""
    for one in tree if isinstance(tree, list) else [tree]:
        if isinstance(one, dict) and "props" in one:
            yield one["props"]
            yield from _parts(one["props"].get("children"))


def slowest(moves: int = 15) -> tuple[float, str]:
    """Median seconds from slider to figures of the bundled scenario that takes longest."""
    from specplan.scenarios.load import bundled, load

    found = []
    for name in bundled():
        if load(name).workload.arrivals.trace is None:  # a trace is brought, not bundled
            page = Page(name)
            page.move(1)
            found.append((statistics.median(page.move(1) for _ in range(moves)), name))
    return max(found)


if __name__ == "__main__":
    print("{:.4f} s, {}".format(*slowest()))
