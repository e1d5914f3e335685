"""A repository with an attacker between it and a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fleet.middle import World, between
from fleet.running import Device, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fleet.running import Farm


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with between(tmp_path / "repository") as middle:
        world = World(tmp_path, middle)
        yield world
        world.close()


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    """A hub that runs."""
    with running(tmp_path) as farm:
        yield farm


@pytest.fixture
def make_device(farm: Farm) -> Iterator[Callable[..., Device]]:
    """Return a maker of devices with an agent each."""
    made: list[Device] = []

    def make(*args: object, **options: object) -> Device:
        device = Device(farm, *args, **options)  # type: ignore[arg-type]  # those of the device
        made.append(device)
        return device

    yield make
    for device in made:
        device.close()
