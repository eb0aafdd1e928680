"""Mappings of records (JSON documents, rows of CSV) to RDF, for data that are none."""
