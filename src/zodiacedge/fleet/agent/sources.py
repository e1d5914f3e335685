"""Readings from standard input, HTTP on this machine, and MQTT: texts of facts, each one change."""

from __future__ import annotations

import json
import threading
from typing import IO, TYPE_CHECKING

from zodiacedge.errors import Diagnostic, FleetProblem, ZodiacError
from zodiacedge.fleet.agent.listener import Handler, Listener

if TYPE_CHECKING:
    from collections.abc import Callable

    from zodiacedge.kb.knowledge_base import KnowledgeBase

    Notify = Callable[[str], object]


def take(kb: KnowledgeBase, text: str, source: str) -> int:
    """Add the facts of a text; return the version that has them."""
    with kb.change(f"readings from {source}") as change:
        change.add_facts(text)
    return change.report.version_after


def follow_lines(kb: KnowledgeBase, stream: IO[str], notify: Notify) -> threading.Thread:
    """Take each line of a stream, in a thread that ends with the stream."""

    def run() -> None:
        for line in stream:
            if line.strip():
                _take_or_notify(kb, line, "standard input", notify)

    thread = threading.Thread(target=run, name="zodiac-agent-lines", daemon=True)
    thread.start()
    return thread


class HttpSource(Listener):
    """Takes `POST /facts` from programs on this machine, and answers when the facts are in the store."""

    def __init__(self, kb: KnowledgeBase, port: int, notify: Notify) -> None:
        """Listen on the loopback address only."""
        super().__init__("127.0.0.1", port, _Handler)
        self.kb, self.notify = kb, notify
        self.start()


class _Handler(Handler):
    server: HttpSource

    def do_POST(self) -> None:  # noqa: N802 - as http.server names it
        """Take facts."""
        if self.path != "/facts" or (body := self.body()) is None:
            self._answer(404, {"error": "POST /facts takes a text of facts, of 1 MiB at most"})
            return
        try:
            text = body.decode()
            self._answer(200, {"version": take(self.server.kb, text, "HTTP")})
        except ZodiacError as problem:
            self._answer(400, {"diagnostics": [found.to_dict() for found in problem.diagnostics]})
        except UnicodeDecodeError as error:
            self._answer(400, {"error": str(error)})

    def _answer(self, status: int, document: object) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class MqttSource:
    """Takes the messages of a topic of an MQTT broker."""

    def __init__(self, kb: KnowledgeBase, address: str, notify: Notify) -> None:
        """Subscribe to `HOST:PORT/TOPIC`; a connection that breaks is made again."""
        from paho.mqtt.client import Client  # noqa: PLC0415 - of an extra
        from paho.mqtt.enums import CallbackAPIVersion  # noqa: PLC0415 - of an extra

        server, _, topic = address.partition("/")
        host, _, port = server.partition(":")
        if not host or not topic or not (port or "1883").isdigit():
            note = "write HOST:PORT/TOPIC, such as localhost:1883/readings/#"
            raise FleetProblem(Diagnostic("F009", f"{address} is no address of a topic", note))
        self._client = Client(CallbackAPIVersion.VERSION2)
        self._client.on_connect = lambda client, *_: client.subscribe(topic, qos=1)
        self._client.on_message = lambda _client, _data, message: _take_or_notify(
            kb, message.payload.decode(errors="replace"), "MQTT", notify
        )
        self._client.connect_async(host, int(port or "1883"))
        self._client.loop_start()

    def close(self) -> None:
        """End the subscription."""
        self._client.disconnect()
        self._client.loop_stop()


def _take_or_notify(kb: KnowledgeBase, text: str, source: str, notify: Notify) -> None:
    try:
        take(kb, text, source)
    except ZodiacError as problem:
        found = problem.diagnostics[0]
        notify(f"a reading from {source} is refused: {found.code}: {found.message}")
