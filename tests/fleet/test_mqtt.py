"""Readings by MQTT from a real broker, mosquitto, which is killed and started again."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

import pytest

import zodiacedge as ze
from fleet.running import free_port, until
from packs.making import refused
from zodiacedge.fleet.agent.sources import MqttSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from paho.mqtt.client import Client

BROKER = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin")
READINGS = 2000


@contextmanager
def broker(folder: Path, port: int) -> Iterator[None]:
    """Run a broker on this machine."""
    assert BROKER
    settings = folder / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n", "utf-8")
    process = subprocess.Popen([BROKER, "-c", str(settings)], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def publisher(port: int) -> Iterator[Client]:
    """Yield a client that is connected, however long the broker takes to start."""
    mqtt = pytest.importorskip("paho.mqtt.client")
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.reconnect_delay_set(0.1, 1)
    client.connect_async("127.0.0.1", port)
    client.loop_start()
    until(client.is_connected)
    try:
        yield client
    finally:
        client.disconnect()
        client.loop_stop()


@pytest.mark.parametrize("address", ["", "localhost", "/topic", "localhost:x/topic", "localhost:1883"])
def test_what_is_no_address_of_a_topic_is_refused(address: str) -> None:
    pytest.importorskip("paho.mqtt.client")
    with refused("F009"):
        MqttSource(ze.open(), address, print)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.skipif(not BROKER, reason="there is no mosquitto")
def test_readings_come_from_a_broker_also_after_it_was_killed(tmp_path: Path) -> None:
    port, told = free_port(), list[str]()
    with ze.open(tmp_path / "store", create=True) as kb:
        # The source is there before the broker.
        source = MqttSource(kb, f"127.0.0.1:{port}/readings/#", told.append)
        for turn in range(2):
            with broker(tmp_path, port), publisher(port) as client:
                publish(kb, client, turn)
        source.close()
        assert len(kb.matching("?- reading(T, N) .")) == 2 * READINGS
        assert not kb.matching("?- elsewhere(X) .")
        assert len(told) == 2
        assert all(text.startswith("a reading from MQTT is refused: L0") for text in told)


def publish(kb: ze.StoredKnowledgeBase, client: Client, turn: int) -> None:
    """Publish readings, other messages and a bad one, and wait until the last has arrived."""
    sent = count()

    def arrives() -> bool:
        client.publish("readings/first", f"first({turn}, {next(sent)}) .", qos=1)
        return bool(kb.matching(f"?- first({turn}, N) ."))

    until(arrives)
    for number in range(READINGS):
        client.publish(f"readings/{number % 7}", f"reading({turn}, {number}) .", qos=1)
    client.publish("elsewhere", "elsewhere(1) .", qos=1)
    client.publish("readings/bad", b"\xff(", qos=1)
    client.publish("readings/last", f"last({turn}) .", qos=1)
    until(lambda: kb.matching(f"?- last({turn}) ."), 300.0, client)
