"""The common parts of all Kafka clients (librdkafka): the cluster's address, settings, and error texts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from confluent_kafka import KafkaException

from squall.errors import SourceError, UsageError
from squall.streams.address import Address
from squall.streams.live.base import ConnectionLost

REQUEST_TIMEOUT_S = 10.0
"""The default timeout of a request in seconds."""
POLL_S = 0.2
"""The time of one poll for messages in seconds."""
SILENT_LOGGER = logging.getLogger("squall.kafka")
"""The logger of clients, which writes nowhere."""
SILENT_LOGGER.addHandler(logging.NullHandler())
SILENT_LOGGER.propagate = False


def settings_of(address: Address) -> tuple[dict[str, Any], Address]:
    """Returns the settings of librdkafka that an address has, and the address without them."""
    hosts, _ = servers_and_topic(address)
    settings: dict[str, Any] = {name: value for name, value in address.options if "." in name}
    login, at, servers = hosts.rpartition("@")
    if at:
        user, _, password = login.partition(":")
        settings |= {"sasl.username": unquote(user), "sasl.password": unquote(password)}
    return {"bootstrap.servers": servers, **settings}, address.without(*settings)


def servers_and_topic(address: Address) -> tuple[str, str]:
    """Returns the servers and the topic of an address. Raises UsageError if one is missing."""
    hosts, _, topic = address.path.removeprefix("//").partition("/")
    if not hosts or not topic or not address.path.startswith("//"):
        raise UsageError(f"`{address.text}` names no topic", hint="write `kafka://HOST:PORT/TOPIC`")
    return hosts, unquote(topic)


def create_client(client: Callable[[dict[str, Any]], Any], settings: dict[str, Any], uri: str) -> Any:
    """Creates a client. Raises UsageError if a setting is wrong."""
    try:
        return client({**settings, "logger": SILENT_LOGGER})
    except KafkaException as error:
        raise UsageError(f"`{uri}` cannot be used: {error_text(error)}") from error


def partitions_of(client: Any, topic: str, timeout: float = REQUEST_TIMEOUT_S) -> list[int]:
    """Returns the partitions of a topic. timeout: how many seconds the cluster has to answer.

    Raises:
        ConnectionLost: No broker answers.
        SourceError: There is no such topic.
    """
    try:
        metadata = client.list_topics(topic, timeout).topics[topic]
    except KafkaException as error:
        raise ConnectionLost(error_text(error)) from error
    if metadata.error is not None:
        raise SourceError(f"the topic `{topic}` cannot be used: {metadata.error.str()}")
    return sorted(metadata.partitions)


def error_text(error: KafkaException) -> str:
    """Returns the text of an exception."""
    return str(error.args[0].str())
