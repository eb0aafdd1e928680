"""What is the same for all clients of Kafka (librdkafka): where the cluster is, settings, and what went wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from confluent_kafka import KafkaException

from squall.errors import SourceError, UsageError
from squall.streams.address import Address
from squall.streams.live.base import Lost

TIMEOUT = 10.0
"""Seconds that an answer may take."""
BLOCK = 0.2
"""Seconds that one look for what has come takes."""
SILENT = logging.getLogger("squall.kafka")
"""Where clients write what nobody is to read."""
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def settings_of(address: Address) -> tuple[dict[str, Any], Address]:
    """What an address says to librdkafka, and the address without that."""
    hosts, _ = place_of(address)
    settings: dict[str, Any] = {name: value for name, value in address.options if "." in name}
    login, at, servers = hosts.rpartition("@")
    if at:
        user, _, password = login.partition(":")
        settings |= {"sasl.username": unquote(user), "sasl.password": unquote(password)}
    return {"bootstrap.servers": servers, **settings}, address.without(*settings)


def place_of(address: Address) -> tuple[str, str]:
    """The servers and the topic. Raises UsageError where one is missing."""
    hosts, _, topic = address.path.removeprefix("//").partition("/")
    if not hosts or not topic or not address.path.startswith("//"):
        raise UsageError(f"`{address.text}` names no topic", hint="write `kafka://HOST:PORT/TOPIC`")
    return hosts, unquote(topic)


def made(client: Callable[[dict[str, Any]], Any], settings: dict[str, Any], uri: str) -> Any:
    """A client. Raises UsageError where a setting is wrong."""
    try:
        return client({**settings, "logger": SILENT})
    except KafkaException as error:
        raise UsageError(f"`{uri}` cannot be used: {said(error)}") from error


def partitions_of(client: Any, topic: str) -> list[int]:
    """The partitions of a topic. Raises Lost if nobody answers, SourceError if there is no such topic."""
    try:
        metadata = client.list_topics(topic, TIMEOUT).topics[topic]
    except KafkaException as error:
        raise Lost(said(error)) from error
    if metadata.error is not None:
        raise SourceError(f"the topic `{topic}` cannot be used: {metadata.error.str()}")
    return sorted(metadata.partitions)


def said(error: KafkaException) -> str:
    """What an exception says."""
    return str(error.args[0].str())
