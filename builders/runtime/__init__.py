"""The runtime that every builder runs: operators, their state, and the dataflow between them. It knows no engine."""
