"""Sources and sinks that are servers and their clients: a module for each protocol, loaded when it is named."""
