"""Real brokers for tests, each on its own loopback port: mosquitto and redis-server, where they are installed.

They are looked for on the path, and in the folder that ``make brokers`` fills (or in SQUALL_BROKERS).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("SQUALL_BROKERS") or Path(__file__).parent.parent / ".venv" / "brokers")
_PROGRAMS = [str(FOLDER / folder) for folder in ("usr/sbin", "usr/bin")]
_LIBRARIES = FOLDER / "usr" / "lib" / str(sysconfig.get_config_var("MULTIARCH"))


def program(name: str) -> str:
    """Returns the path of a broker, and skips the test if there is none."""
    if (result := shutil.which(name, path=environment()["PATH"])) is None:
        pytest.skip(f"there is no {name}: `make brokers` fetches it")
    return result


def environment() -> dict[str, str]:
    """Returns an environment in which brokers, their clients and their libraries are found."""
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin", *_PROGRAMS])
    libraries = os.pathsep.join(filter(None, [os.environ.get("LD_LIBRARY_PATH"), str(_LIBRARIES)]))
    return {**os.environ, "PATH": path, "LD_LIBRARY_PATH": libraries}


def free_port() -> int:
    """Returns a free port below those that the system gives to connections: no other test takes it by chance."""
    draw = random.SystemRandom()
    while True:
        port = draw.randrange(10_000, 30_000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port


class Broker:
    """A server that can be started, killed and started again at the same port."""

    def __init__(self, command: list[str], port: int) -> None:
        self.command = command
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        null = subprocess.DEVNULL
        self.process = subprocess.Popen(self.command, env=environment(), stdin=null, stdout=null, stderr=null)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert self.process.poll() is None, f"{self.command} ends at once"
                time.sleep(0.01)
            else:
                assert self.process.poll() is None, f"{self.command} ends at once"
                return
        raise TimeoutError(self.command)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(20)

    def running(self) -> Iterator[Broker]:
        """Starts the broker before a test and ends it after the test; a fixture yields from it."""
        self.start()
        yield self
        if self.process is not None and self.process.poll() is None:
            self.kill()


def mosquitto(folder: Path) -> Broker:
    port = free_port()
    config = folder / "mosquitto.conf"
    # As the user that runs it, which is allowed to write here.
    config.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location {folder}/\n"
        f"user {os.environ.get('USER') or 'root'}\n"
    )
    return Broker([program("mosquitto"), "-c", str(config)], port)


def redis(folder: Path) -> Broker:
    port = free_port()
    options = ["--bind", "127.0.0.1", "--dir", str(folder), "--appendonly", "yes", "--appendfsync", "always"]
    return Broker([program("redis-server"), "--port", str(port), *options], port)
