"""Checks of mappings: whether they can be read, and whether they fit records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from squall.checking.findings import INFO, WARNING, Finding, as_findings, sorted_findings
from squall.errors import SquallError, TranslatorWarning, UsageError, did_you_mean
from squall.streams.address import Address
from squall.streams.mappings.evaluation import UnusableRecord, evaluator_of
from squall.streams.mappings.model import OUTPUTS_NAME, Constant, Mapping, Reference, Rule, path_text, whole_path
from squall.streams.mappings.options import RML_ENDINGS, load
from squall.streams.mappings.paths import Steps
from squall.streams.mappings.rml import NAMESPACES
from squall.streams.mappings.shapes import Sample, sample_of
from squall.wording import counted

SAMPLE_RECORDS = 1000
"""The number of records that a mapping is checked with."""
_ENDING = ".map"


def is_mapping(path: str) -> bool:
    """Returns whether a file is a mapping: by its ending, or by what it is about if it is Turtle."""
    if path.lower().endswith((_ENDING, ".rml")):
        return True
    if not path.lower().endswith(RML_ENDINGS):
        return False
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    return any(namespace in text for namespace in NAMESPACES)


def lint_mapping(path: str, sources: Sequence[Address] = ()) -> tuple[Finding, ...]:
    """Returns the findings of a mapping.

    Args:
        path: The file of the mapping.
        sources: The addresses of files of records, of which a sample is read.

    Raises:
        SourceError: A file cannot be read.
        UsageError: It has no records.
    """
    samples = [(source, sample_of(source.without(*_OTHER_OPTIONS), SAMPLE_RECORDS)) for source in sources]
    is_csv = {sample.is_csv for _, sample in samples}
    if len(is_csv) > 1:
        raise UsageError("CSV and JSON have no mapping in common", hint="check them one by one")
    try:
        mapping = load(path, is_csv.pop() if is_csv else None)
    except SquallError as error:
        return sorted_findings(as_findings(error), [path])
    findings = [*_of_mapping(mapping, path, sources)]
    for source, sample in samples:
        findings += _of_sample(mapping, path, source, sample)
    return sorted_findings(findings, [path])


_OTHER_OPTIONS = ("map", "time", "unit", "window", "lateness", "stream", "idle", "follow", "poll", "ahead", "context")
"""Options of sources that say nothing about how records are read."""


def _of_mapping(mapping: Mapping, path: str, sources: Sequence[Address]) -> Iterator[Finding]:
    if not mapping.is_timed and not any(source.get("time") for source in sources):
        message, hint = f"the mapping `{path}` has no time", "end it with `AT ?field`, or give the source `time=FIELD`"
        yield Finding("no-time", INFO, message, None, hint)
    for name, origin in mapping.unused:
        yield Finding(
            "unused-variable", WARNING, f"nothing uses `{name}`", origin, "leave its field out of the pattern"
        )
    fixed_subjects = {rule.subject.term: None for rule in mapping.rules if isinstance(rule.subject, Constant)}
    for subject in fixed_subjects:
        hint = "a subject that depends on the record has a field in it: `ex:{?id}`"
        yield Finding("fixed-subject", WARNING, f"the subject {subject} is the same for all records", None, hint)


def unknown_fields(mapping: Mapping, source: Address, sample: Sample) -> Iterator[tuple[str, TranslatorWarning]]:
    """Yields each field of a mapping that no record of a sample has, as a path, with a warning.

    Args:
        mapping: The mapping.
        source: The address of the records.
        sample: The sample.
    """
    places = dict(mapping.places)
    what, sampled = "column" if sample.is_csv else "field", counted(len(sample.records), "record")
    for steps in dict.fromkeys(steps for rule in mapping.rules for steps in _paths(rule)):
        missing = next((end for end in range(1, len(steps) + 1) if sample.shape.at(steps[:end]) is None), None)
        if missing is None or steps[missing - 1] is None:
            continue
        parent, name = sample.shape.at(steps[: missing - 1]), path_text(steps[:missing])
        candidates = parent.members if parent is not None else ()
        message = f"no record of `{source.path}` has the {what} `{name}`"
        hint = did_you_mean(str(steps[missing - 1]), candidates) or f"that is so for the first {sampled}"
        yield name, TranslatorWarning(message, places.get(name), hint)


def unknown_required_fields(source: Address) -> Iterator[TranslatorWarning]:
    """Yields a warning for each field of the mapping of a file that none of the first records has, unless the mapping
    marks it as optional.

    What cannot be read yields none: whoever reads the whole file reports that.
    """
    path = source.get("map")
    if not path or path == OUTPUTS_NAME or source.scheme != "file" or not Path(source.path).is_file():
        return
    try:
        sample = sample_of(source.without(*_OTHER_OPTIONS), SAMPLE_RECORDS)
        mapping = load(path, sample.is_csv)
    except SquallError:
        return
    yield from (warning for name, warning in unknown_fields(mapping, source, sample) if name not in mapping.optional)


def _of_sample(mapping: Mapping, path: str, source: Address, sample: Sample) -> Iterator[Finding]:
    for _, warning in unknown_fields(mapping, source, sample):
        yield from as_findings(warning, "unknown-field")
    nested = mapping.nested() if sample.is_csv else None
    if nested is not None:
        message = f"the mapping has the path `{path_text(nested)}`, and rows of CSV have columns alone"
        yield Finding("nested-path", "error", message, None, 'write a pattern of columns: `{ "column": ?value }`')
        return
    yield from _unusable(mapping, path, source, sample)


def _unusable(mapping: Mapping, path: str, source: Address, sample: Sample) -> Iterator[Finding]:
    evaluator, reasons, statement_count = evaluator_of(mapping), list[str](), 0
    for record in sample.records:
        try:
            statement_count += len(evaluator.statements(record))
        except UnusableRecord as error:
            reasons.append(str(error))
    reasons = [*sample.malformed, *reasons]
    total = len(sample.records) + len(sample.malformed)
    if reasons:
        message = f"{len(reasons)} of {total} records of `{source.path}` cannot be used"
        yield Finding("unusable-records", WARNING, message, None, f"the first: {reasons[0]}")
    elif not statement_count:
        message = f"the mapping `{path}` makes no triples of the {total} records of `{source.path}`"
        yield Finding(
            "no-triples", WARNING, message, None, "look at its conditions, and at the fields that are missing"
        )


def _paths(rule: Rule) -> Iterator[Steps]:
    """Yields the paths of the references of a rule from the record."""
    for reference in (*rule.references(), *(Reference(*level) for level in rule.levels)):
        yield (*whole_path(rule.levels, reference.level), *reference.path)
