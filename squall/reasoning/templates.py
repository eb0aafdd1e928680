"""The triples that the rules of programs derive, which must not change a schema that is fixed before the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from squall.errors import TranslatorWarning
from squall.model.consequences import Construct, Insert
from squall.model.outputs import output_specs
from squall.model.patterns import FactPattern, Pattern, Variable
from squall.model.systems import System
from squall.rdf.vocabulary import TYPE


def derived_templates(programs: Sequence[System]) -> Iterator[tuple[System, Pattern]]:
    """Yields the templates of triples that patterns may read, those of derived streams included, with their rules."""
    for spec in output_specs(System(subsystems=tuple(programs))):
        for rule in spec.rules:
            for consequence in rule.consequences if rule.reentrant or spec.stream else ():
                if isinstance(consequence, Construct | Insert):
                    yield from ((rule, template) for template in consequence.template if isinstance(template, Pattern))


def is_open(head: FactPattern) -> bool:
    """Returns whether the facts of a head may have any predicate, or be types of any class."""
    return isinstance(head, Pattern) and (
        isinstance(head.predicate, Variable) or (head.predicate == TYPE and isinstance(head.object, Variable))
    )


def open_heads(programs: Sequence[System], hint: str) -> Iterator[TranslatorWarning]:
    """Yields a warning for each rule that derives triples of any predicate, or types of any class."""
    for rule, template in derived_templates(programs):
        if is_open(template):
            message = f"nothing follows from what `{rule.name}` derives of classes and properties, if it derives any"
            yield TranslatorWarning(message, template.origin or rule.origin, hint)
