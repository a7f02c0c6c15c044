"""`specplan serve`: the live page, on this machine only."""

from __future__ import annotations

import logging
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specplan.results.answer import Answer
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.load import bundled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dash import Dash
    from werkzeug.serving import BaseWSGIServer

HOST = "127.0.0.1"
FIRST = "toy-20ms"
LOCAL_NAMES = ("127.0.0.1", "localhost")
LARGEST_REQUEST = 1 << 20


def serve_answer(
    target: str | None, sets: Sequence[str], port: int, announce: Callable[[str], None]
) -> Answer:
    """Serve the page until Ctrl-C.

    `announce` gets the address once the server listens. Raises ScenarioError without Dash, for a
    scenario that is not valid, and for a port that is taken.
    """
    server = make_server(target, sets, port)
    address = f"http://{HOST}:{server.port}/"
    announce(f"{address} (Ctrl-C ends it)")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return Answer({"address": address}, "", ["stopped"])


def make_server(target: str | None, sets: Sequence[str] = (), port: int = 0) -> BaseWSGIServer:
    """Bind the page to loopback; port 0 takes a free one. Raises as `serve_answer`."""
    app = make_app(target, sets)
    from werkzeug.serving import WSGIRequestHandler
    from werkzeug.serving import make_server as listen

    class Quiet(WSGIRequestHandler):
        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Keep the terminal free of a line a request."""

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    try:
        return listen(HOST, port, app.server, threaded=True, request_handler=Quiet)
    except (OSError, OverflowError, SystemExit) as error:
        wrong = f"cannot listen on {HOST}:{port}: {getattr(error, 'strerror', None) or error}"
        raise ScenarioError(Fault(wrong, "another --port, or 0 for any free one")) from None


def make_app(target: str | None, sets: Sequence[str] = ()) -> Dash:
    """Build the page of a scenario; the bundled ones are one link away."""
    if find_spec("dash") is None:
        raise ScenarioError(
            Fault("the live page needs Dash, which is not here", "`pip install 'specplan[serve]'`")
        )
    from dash import Dash

    from specplan.results.live import callbacks as live_callbacks
    from specplan.results.live import page as live_page
    from specplan.results.live.view import Base

    first = target or FIRST
    own = Base.read(first, sets)
    names = (first, *(name for name in bundled() if name != first))

    @lru_cache(maxsize=16)
    def base(name: str) -> Base:
        return own if name == first else Base.read(name)

    # No folder of assets is served, and no script from elsewhere.
    app = Dash(
        "specplan", title=f"specplan: {own.scenario.name}", update_title="",
        assets_folder=str(Path(__file__).with_name("no-assets")), include_assets_files=False,
        serve_locally=True, on_error=live_callbacks.explain,
        suppress_callback_exceptions=True, index_string=live_page.INDEX,
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
    )  # fmt: skip
    app.layout = live_page.shell
    live_callbacks.register(app, base, names, first)
    _guard(app)
    return app


def _guard(app: Dash) -> None:
    """Answer this machine only, and let the page load nothing from elsewhere.

    A foreign Host header is another site's name that was pointed at this machine (DNS rebinding); a
    foreign Origin is another site's page that posts here.
    """
    from dash.exceptions import DependencyException
    from flask import abort, request

    server: Any = app.server
    server.config["MAX_CONTENT_LENGTH"] = LARGEST_REQUEST
    scripts = " ".join(app.csp_hashes())
    policy = (
        f"default-src 'self'; script-src 'self' {scripts} 'unsafe-eval'; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )

    def only_here() -> None:
        if _name(request.headers.get("Host", "")) not in LOCAL_NAMES:
            abort(403, f"This page answers to {' and '.join(LOCAL_NAMES)} only.")
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"http://{request.headers['Host']}":
            abort(403, "This page answers its own requests only.")

    def one_page() -> None:
        if request.url_rule is not None and request.url_rule.rule == "/<path:path>":
            abort(404, "There is one page here: /")  # Dash would answer any path with it
        if request.method == "POST":
            asked = request.get_json(silent=True)
            if not isinstance(asked, dict) or not {"output", "outputs"} <= asked.keys():
                abort(400, "This is no request of the page.")

    def within(response: Any) -> Any:
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response

    def no_such_part(_: DependencyException) -> tuple[str, int]:
        return "There is no such part of the page.", 404

    server.register_error_handler(DependencyException, no_such_part)
    server.before_request(only_here)
    server.before_request(one_page)
    server.after_request(within)


def _name(host: str) -> str:
    """Take the port off a Host header, whose case does not matter.

    >>> _name("LocalHost:8050"), _name("[::1]:8050")
    ('localhost', '[::1]')
    """
    named = host.rpartition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
    return named.lower()
