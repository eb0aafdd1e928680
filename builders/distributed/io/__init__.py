"""What a distributed run reads and writes: records, splits, parsing, ingestion, and the files of tasks."""
