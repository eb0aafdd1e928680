"""The translator of OWL 2 ontologies: rules of OWL 2 RL for each axiom.

A rule set such as `owl2rl` reads axioms as triples and joins them with the data. Here the axioms are known, so that
each gives rules that name its classes and properties.

Source: OWL 2 Profiles (second edition), section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from squall.errors import Origin, SquallError, TranslatorError, TranslatorWarning, raise_all
from squall.lexers.owl import tree
from squall.model import System
from squall.translators.owl.axioms import AxiomIssue, Axioms
from squall.translators.owl.imports import closure
from squall.translators.owl.vocabulary import names_in


def translator(ontology: tree.Ontology, documents: Mapping[str, str] | None = None, lenient: bool = False) -> System:
    """Translates an ontology and its imports to a system with the rules of each axiom.

    Args:
        ontology: The ontology.
        documents: The files of imported ontologies by their IRIs, if these are not relative.
        lenient: Parts of axioms that are not in OWL 2 RL are left out with a warning, and are no errors.

    Raises:
        TranslatorError: The ontology is not in OWL 2 RL, or an imported one cannot be read.
        Errors: There are several errors.
    """
    errors: list[SquallError] = []
    ontologies = closure([ontology], documents or {}, errors)
    all_axioms = [axiom for part in ontologies for axiom in part.axioms]
    axioms = Axioms(all_axioms)
    systems = axioms.systems()
    if not lenient:
        hint = "{remedy}; correct it, or leave it out by `--lenient`"
        errors += (issue_error(issue, ontology.name, hint) for issue in axioms.issues)
    raise_all(errors)
    warnings = tuple(_warning(issue, ontology.name) for issue in axioms.issues)
    return System(
        PurePath(ontology.name).stem,
        subsystems=tuple(systems),
        warnings=warnings,
        is_background=True,
        declared_names=names_in(all_axioms),
        axioms=tuple(all_axioms),
    )


def issue_error(issue: AxiomIssue, name: str, hint: str, origin: Origin | None = None) -> TranslatorError:
    """Returns the error of what is not in OWL 2 RL.

    Args:
        issue: What it is.
        name: The name of the text.
        hint: The hint, with `{remedy}` in place of the remedy.
        origin: The place of the error if the axiom has none.
    """
    return TranslatorError(_message(issue, name), issue.origin or origin, hint.format(remedy=issue.issue.remedy))


def _warning(issue: AxiomIssue, name: str) -> TranslatorWarning:
    return TranslatorWarning(f"{_message(issue, name)}; it is left out", issue.origin, issue.issue.remedy)


def _message(issue: AxiomIssue, name: str) -> str:
    return str(issue) if issue.origin else f"{issue} (in `{name}`)"
