"""Descriptions of the formats of sources and sinks, for people who choose one."""

from __future__ import annotations

DESCRIPTIONS = {
    "nt": "N-Triples: a statement on each line",
    "ntt": "N-Triples with a time in front of each line",
    "nq": "N-Quads: a statement on each line, with its graph",
    "nqt": "N-Quads with a time in front of each line",
    "nt5": "N-Triples with the begin and the end of the validity of each statement",
    "ttl": "Turtle",
    "trig": "TriG: Turtle with named graphs",
    "rdf": "RDF/XML",
    "jsonld": "JSON-LD",
    "rdfp": "RDF Patch: transactions of additions and deletions",
    "ru": "SPARQL updates (DELETE DATA, INSERT DATA), for a store",
    "jelly": "Jelly: binary frames of statements",
    "nt-messages": "RDF Messages of N-Triples: statements in groups",
    "nq-messages": "RDF Messages of N-Quads",
    "ttl-messages": "RDF Messages of Turtle",
    "trig-messages": "RDF Messages of TriG",
    "jelly-messages": "RDF Messages in Jelly, with times",
    "json": "JSON documents, each a record, with a mapping",
    "ndjson": "a JSON object on each line, for each output; as a source records, with a mapping",
    "ndjson-evaluations": "a JSON object on each line, for each evaluation with all its answers",
    "ndjson-values": "a flat JSON object on each line, for each output: numbers, truth values and texts",
    "csv": "comma-separated plain values: the time, the rule and a column for each variable; as a source rows, mapped",
    "tsv": "tab-separated plain values: the time, the rule and a column for each variable",
    "csv-terms": "comma-separated values: whole terms in N-Triples",
    "tsv-terms": "tab-separated values: whole terms in N-Triples",
    "avro": "Avro: as a source records, with a mapping",
    "parquet": "a Parquet file with a typed column for each variable; as a source rows, mapped",
    "table": "a table for the eye",
    "srj": "SPARQL Query Results JSON",
    "srx": "SPARQL Query Results XML",
    "srcsv": "SPARQL Query Results CSV",
    "srtsv": "SPARQL Query Results TSV",
}
"""The formats by name. Those of folders of tables belong to the builder that writes them."""
