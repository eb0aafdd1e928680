"""Messages for what RDF 1.2 has and programs do not."""

TRIPLE_TERMS = "triples in triples (RDF 1.2) are not read"
DIRECTIONS = "base directions of texts (RDF 1.2) are not supported"
