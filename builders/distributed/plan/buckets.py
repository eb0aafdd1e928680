"""Buckets and stage numbers: what places a row in a distributed engine."""

from __future__ import annotations

import zlib

BUCKET_COUNT = 64
"""The number of buckets that keys are hashed into, and so the finest partitioning of state. It is part of the
checkpoint format."""
BROADCAST_BUCKET = -1
"""The bucket of a record that is broadcast, until it is copied for each task."""
BucketPartitions = tuple[int, ...]
"""The partition of each bucket after a shuffle."""
ORDERED_SCAN = -1
"""The stage of facts that are scanned in order, before all others (`squall.builders.distributed.plan.ordered_scan`)."""
OUTPUT_STAGE = 1_000_000
"""The stage of the sink nodes, after all others."""


def bucket_of(text: str, many: int = BUCKET_COUNT) -> int:
    """Returns the bucket, of so many, of a key's text."""
    return zlib.crc32(text.encode()) % many


def bucket_partitions(partitions: int) -> BucketPartitions:
    """Returns the partition of each bucket, of so many. Every partition gets as near as can be the same number of
    buckets. (The hash of an engine may give some twice as many.)"""
    return tuple(bucket % partitions for bucket in range(BUCKET_COUNT))


SINGLE_PARTITION = bucket_partitions(1)
"""All rows in one task."""
