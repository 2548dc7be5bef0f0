"""Serves the page: addresses, live differences, and the guard before everything.

A stream is open as long as a tab is. Many forgotten tabs must not cost much, so their number is bounded, and two viewers of the same
address share one rendering.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from streaming.published.records import STALE_S, duration
from streaming.published.wire_text import shown_name
from streaming.traces.trace_events import trace_events
from streaming.web.detail_views import Details
from streaming.web.frames import FRAMES, Frame, decoded, of_events, of_finding
from streaming.web.group_view import GroupPage, group_by_id, link_to_row, rebalance_by_row
from streaming.web.guard import COOKIE, HEADERS, form_of, local_path
from streaming.web.happened import events_of_line
from streaming.web.static_files import static_files
from streaming.web.views import NotShownError, Overview, Renderer, View

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from streaming.published.page_state import PageState
    from streaming.web.frames import FrameSource, Wanted
    from streaming.web.guard import Guard

_log: Final = logging.getLogger(__name__)

STREAMS: Final = 64
_LOOK_EVERY_S: Final = 0.25
_SAY_ALIVE_EVERY_S: Final = 15.0
_KEPT_VIEWS: Final = 64
_LONGEST_FORM: Final = 4_096
_LONGEST_ADDRESS: Final = 4_096


class Page:
    """The application.

    :param streams: how many viewers get changes at a time.
    :param frames: reads the frames of the mirror; None where there is none, as for a recording.
    """

    def __init__(self, state: PageState, guard: Guard, *, streams: int = STREAMS, frames: FrameSource | None = None) -> None:
        self._state = state
        self._guard = guard
        self._streams = streams
        self._frames = frames
        self._render = Renderer()
        self._overview = Overview(state, self._render)
        self._groups = GroupPage(state, self._render, has_frames=frames is not None)
        self._details = Details(state, self._render, has_frames=frames is not None)
        self._views: OrderedDict[str, tuple[str, int, View]] = OrderedDict()  # address → token, version, what it showed
        self._shown: OrderedDict[str, View] = OrderedDict()  # what was handed out, by token
        self._handed_out = 0
        self.open_streams = 0
        self.ending = False
        self.app = Starlette(
            routes=[
                Route("/", self._page),
                Route("/sight", self._page),
                Route("/group", self._group_by_name),
                Route("/groups/{id}", self._page),
                Route("/groups/{id}/events.jsonl", self._events),
                Route("/groups/{id}/trace.json", self._trace),
                Route("/groups/{id}/frames/{row}", self._frames_of_events),
                Route("/groups/{id}/rebalances/{row}", self._page),
                Route("/findings/{id}", self._page),
                Route("/findings/{id}/frames", self._evidence),
                Route("/stream", self._stream),
                Route("/static/{name}", self._static),
                Route("/token", self._take_token, methods=["POST"]),
                Route("/healthz", self._healthy),
                Route("/readyz", self._ready),
            ],
            middleware=[Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=4), Middleware(_Guarded, page=self)],
            exception_handlers={404: self._not_found, 405: self._not_found, NotShownError: self._not_shown},
        )

    # --- views -------------------------------------------------------------------------------------------------------------

    def _view(self, path: str, query: Mapping[str, str]) -> View:
        try:
            view = self._made(path, query)
        except NotShownError:
            raise
        except Exception:  # other programs may write to the topics, too: one record of theirs must not end a stream
            _log.exception("the view at %s cannot be made", path)
            raise NotShownError("This view cannot be made of what the topics hold; the log of the page says why.") from None
        view.parts["banner"] = self._banner()
        return view

    def _made(self, path: str, query: Mapping[str, str]) -> View:
        match path.strip("/").split("/"):
            case [""]:
                return self._overview.view(query)
            case ["sight"]:
                return self._details.sight()
            case ["groups", id_]:
                return self._groups.view(id_, query)
            case ["groups", id_, "rebalances", row]:
                return self._details.rebalance(id_, row, query)
            case ["findings", name]:
                return self._details.finding(unquote(name))
            case _:
                raise NotShownError("There is nothing at this address.")

    def _banner(self) -> str:
        state, now_s = self._state, self._state.now_s()
        return self._render(
            "_banner.html",
            problem=state.problem,
            complete=state.complete,
            stale=state.complete and not state.is_recorded and state.problem is None and now_s - state.status_written_s > STALE_S,
            status_s=state.status_written_s,
            now_s=now_s,
        )

    def _current(self, path: str, query: QueryParams) -> tuple[str, View]:
        """The view as it is now, and a token by which a stream knows what its viewer has. The caller holds the lock."""
        address = f"{path}?{query}"
        version = self._state.version + (self._state.status_version if path == "/sight" else 0)
        if not self._state.is_recorded:
            version = version * 1_000_000 + int(time.monotonic() // _SAY_ALIVE_EVERY_S)  # what depends on the time alone
        known = self._views.get(address)
        if known is not None and known[1] == version:
            self._views.move_to_end(address)
            return known[0], known[2]
        view = self._view(path, query)
        self._handed_out += 1
        token = str(self._handed_out)
        self._views[address] = (token, version, view)
        self._views.move_to_end(address)
        self._keep(token, view)
        while len(self._views) > _KEPT_VIEWS:
            self._views.popitem(last=False)
        return token, view

    def _keep(self, token: str, view: View) -> None:
        self._shown[token] = view
        while len(self._shown) > 2 * _KEPT_VIEWS:
            self._shown.popitem(last=False)

    # --- answers -----------------------------------------------------------------------------------------------------------

    async def _page(self, request: Request) -> Response:
        with self._state.lock:
            token, view = self._current(request.url.path, request.query_params)
            content = self._html(view, token)
        return HTMLResponse(content, headers={"Cache-Control": "no-store"})

    def _html(self, view: View, token: str) -> str:
        """The whole page. The caller holds the lock.

        :param token: by which a stream knows what is shown.
        """
        now_s = self._state.now_s()
        html: str = self._render(
            view.template,
            title=view.title,
            view=view.template,
            parts=view.parts,
            lists=view.lists,
            attributes=view.attributes,
            now_s=now_s,
            recorded=self._state.is_recorded,
            token=token,
            **view.fixed,
        )
        if "base_s" in view.fixed:  # strips are the same for as long as nothing happens: the script moves them on from here
            begin = (now_s - view.fixed["base_s"]) / 60 - view.fixed["stretch"].span_min
            html = str(html).replace('class="strip" viewBox="0 ', f'class="strip" viewBox="{begin:.3f} ')
        return with_times(html, now_s)

    async def _evidence(self, request: Request) -> Response:
        """A finding's frames, field by field; read from the mirror when somebody asks, outside of the loop and of the lock."""
        with self._state.lock:
            finding = self._state.findings.get(request.path_params["id"])
        if finding is None:
            raise NotShownError("There is no such finding.")
        about = f"{finding['rule']} {finding['name']}"
        back = f"/findings/{quote(finding['id'], safe='')}"
        return await self._decoded(of_finding(finding), about, back, finding["summary"])

    async def _frames_of_events(self, request: Request) -> Response:
        """The frames of a line of a group's text."""
        row = request.path_params["row"]
        with self._state.lock:
            past = group_by_id(self._state, request.path_params["id"])
            events = events_of_line(past.events, row)
        if not events:
            raise NotShownError("The page does not know this event any more: it keeps the newest of each group.")
        return await self._decoded(of_events(events), shown_name(past.key[1]), link_to_row(past.id, events), "")

    async def _decoded(self, wanted: list[Wanted], about: str, back: str, summary: str) -> Response:
        if self._frames is None:
            raise NotShownError("There is no mirror topic to read frames from.")
        frames = await run_in_threadpool(decoded, wanted, self._frames)
        shown = [Frame(*map(self._state.harmless, frame)) for frame in frames]
        fixed = {"about": about, "back": back, "summary": summary, "frames": shown, "more": len(wanted) - FRAMES}
        with self._state.lock:
            view = View("frames.html", f"Frames of {about}", fixed=fixed)
            view.parts["banner"] = self._banner()
            return HTMLResponse(self._html(view, ""), headers={"Cache-Control": "no-store"})

    async def _group_by_name(self, request: Request) -> Response:
        """The address that others know: by name, and by cluster where there are several."""
        name, cluster = request.query_params.get("name", ""), request.query_params.get("cluster")
        with self._state.lock:
            found = [key for key in self._state.groups if key[1] == name and cluster in {None, key[0]}]
            ids = [self._state.groups[key].id for key in found]
        if not ids:
            raise NotShownError("The monitor has not seen a group of this name.")
        return RedirectResponse(f"/groups/{ids[0]}" if len(ids) == 1 else f"/?text={quote(name)}", status_code=303)

    async def _events(self, request: Request) -> Response:
        with self._state.lock:
            events = list(group_by_id(self._state, request.path_params["id"]).events)
        lines = (json.dumps(event.as_json()) + "\n" for event in events)
        return PlainTextResponse(
            "".join(lines),
            media_type="application/x-ndjson",
            headers={"Content-Disposition": 'attachment; filename="events.jsonl"', "Cache-Control": "no-store"},
        )

    async def _trace(self, request: Request) -> Response:
        """A group's past, or one of its rebalances, for a viewer of traces."""
        with self._state.lock:
            past = group_by_id(self._state, request.path_params["id"])
            row = request.query_params.get("rebalance")
            if row is None:
                trace = trace_events(past, to_s=self._state.now_s())
            else:
                event = rebalance_by_row(past, row)
                trace = trace_events(past, from_s=event.began_s, to_s=event.at_s)
        return Response(
            json.dumps(trace, separators=(",", ":")),
            media_type="application/json",
            headers={"Content-Disposition": 'attachment; filename="trace.json"', "Cache-Control": "no-store"},
        )

    async def _static(self, request: Request) -> Response:
        file = static_files().get(request.url.path)
        if file is None:
            raise NotShownError("There is nothing at this address.")
        return Response(file.content, media_type=file.media_type, headers={"Cache-Control": "public, max-age=31536000, immutable"})

    async def _take_token(self, request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _LONGEST_FORM:
                return self.message(413, "Too long", "No token is as long as this.")
        fields = form_of(body)
        if not self._guard.token_is(fields.get("token", "")):
            await asyncio.sleep(1)  # guessing must not be quick
            return self.message(401, "Token", "This is not the token.", ask_token=True, next_=local_path(fields.get("next", "/")))
        answer = RedirectResponse(local_path(fields.get("next", "/")), status_code=303)
        answer.set_cookie(
            COOKIE,
            self._guard.cookie(),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
            max_age=30 * 86_400,
        )
        return answer

    async def _healthy(self, _request: Request) -> Response:
        return PlainTextResponse("ok\n")  # an answer shows that the loop turns

    async def _ready(self, _request: Request) -> Response:
        """Ready once the topics were read: later, without Kafka, the page still shows what it has, and says how old that is."""
        if self._state.complete:
            return PlainTextResponse("ok\n")
        return PlainTextResponse("the topics have not been read to their end yet\n", status_code=503)

    async def _not_found(self, request: Request, _error: Exception) -> Response:
        return await self._not_shown(request, NotShownError("There is nothing at this address."))

    async def _not_shown(self, _request: Request, error: Exception) -> Response:
        return self.message(404, "Not here", str(error))

    def message(self, status: int, title: str, message: str, *, ask_token: bool = False, next_: str = "/") -> Response:
        """Return an answer that is a sentence."""
        content = self._render("message.html", title=title, message=message, ask_token=ask_token, next=next_)
        return HTMLResponse(content, status_code=status, headers={"Cache-Control": "no-store"})

    # --- live --------------------------------------------------------------------------------------------------------------

    async def _stream(self, request: Request) -> Response:
        if self.open_streams >= self._streams:
            return PlainTextResponse("too many viewers", status_code=503, headers={"Retry-After": "20"})
        view = request.query_params.get("view", "/")[:_LONGEST_ADDRESS]
        split = urlsplit(local_path(view))
        query = QueryParams(
            [*parse_qsl(split.query), *([("anchor", request.query_params["anchor"])] if "anchor" in request.query_params else [])]
        )
        before = self._shown.get(request.query_params.get("have", ""))
        return _Stream(self, self._changes(split.path, query, before))

    async def _changes(self, path: str, query: QueryParams, before: View | None) -> AsyncIterator[str]:
        yield "retry: 2000\n\n"
        said_s = time.monotonic()
        while not self.ending:
            with self._state.lock:
                try:
                    _, view = self._current(path, query)
                except NotShownError:
                    yield "event: gone\ndata: {}\n\n"
                    return
                now_s = self._state.now_s()
            difference = {} if view is before else dict(differences(before, view))
            before = view
            if difference or time.monotonic() - said_s > _SAY_ALIVE_EVERY_S:
                said_s = time.monotonic()
                yield f"data: {json.dumps({'now': round(now_s, 3), **difference}, separators=(',', ':'))}\n\n"
            await asyncio.sleep(_LOOK_EVERY_S)


def differences(before: View | None, now: View) -> Iterator[tuple[str, Any]]:
    """Yield what a viewer of one view needs to have the other: parts, items and order of lists, attributes."""
    parts = {id_: html for id_, html in now.parts.items() if before is None or before.parts.get(id_) != html}
    if parts:
        yield "parts", parts
    lists = {}
    for name, items in now.lists.items():
        old = {} if before is None else before.lists.get(name, {})
        change: dict[str, Any] = {}
        changed = {id_: html for id_, html in items.items() if (known := old.get(id_)) is not html and known != html}
        if changed:
            change["items"] = changed
        if list(old) != list(items):
            change["order"] = list(items)
        if change:
            lists[name] = change
    if lists:
        yield "lists", lists
    attributes = {id_: names for id_, names in now.attributes.items() if before is None or before.attributes.get(id_) != names}
    if attributes:
        yield "attributes", attributes


_TIME: Final = re.compile(r'(<time data-s="(\d+(?:\.\d+)?)">)</time>')


def with_times(html: str, now_s: float) -> str:
    """Return a page with how long ago its times are; the script goes on from there.

    A stream leaves that out: nothing would be the same a second later.
    """
    return _TIME.sub(lambda found: f"{found[1]}{duration(now_s - float(found[2]))}</time>", html)


class _Stream(StreamingResponse):
    """Counts as open from its beginning to its end, however it ends."""

    def __init__(self, page: Page, content: AsyncIterator[str]) -> None:
        super().__init__(content, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._page.open_streams += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._page.open_streams -= 1


class _Guarded:
    """Refuses what the guard refuses, and gives every answer its headers."""

    def __init__(self, app: ASGIApp, page: Page) -> None:
        self._app = app
        self._page = page
        self._guard = page._guard  # noqa: SLF001 - a part of it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        if scope["path"] in {"/healthz", "/readyz"}:  # who asks comes by address, without a token, and gets nothing about groups
            return None
        headers, request = Headers(scope=scope), Request(scope)
        guard, page = self._guard, self._page
        if not guard.takes_connection(scope["client"][0] if scope.get("client") else None):
            return page.message(403, "Refused", "This page is reached through its proxy only.")
        if not guard.knows_host(headers.get("host", "")):
            return page.message(421, "Refused", "This page is not called by this name; --name makes another one known.")
        if scope["path"] == "/token" or scope["path"].startswith("/static/"):
            return None
        if not guard.knows_token(headers.get("authorization", ""), request.cookies.get(COOKIE, "")):
            address = scope["path"] + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
            return page.message(
                401, "Token", "This page asks for the token that its operator has set.", ask_token=True, next_=local_path(address)
            )
        return None


class Server(uvicorn.Server):
    """Ends its streams before it ends."""

    def __init__(self, page: Page) -> None:
        self._page = page
        super().__init__(
            uvicorn.Config(
                page.app,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=2,
                limit_concurrency=1_000,
                lifespan="off",
            )
        )

    async def shutdown(self, sockets: list[Any] | None = None) -> None:
        self._page.ending = True
        with contextlib.suppress(asyncio.CancelledError):
            await super().shutdown(sockets)
