"""Physical planning for distributed engines: stages, partitioning, broadcast, skew and shards."""
