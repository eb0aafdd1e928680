"""The options of a pipeline, by Beam's own names, and the runner that they name."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from typing import Any

from squall.builders.beam.beam_import import beam, preserved_logging
from squall.builders.runtime.tuning import Tuning
from squall.errors import BuilderError, did_you_mean

LOCAL = "FnApiRunner"
"""The default runner, in this process. (Beam's own default would download a program.)"""
_SETUP = beam.options.pipeline_options
_LOCAL = _SETUP.StandardOptions.LOCAL_RUNNERS


@dataclass(frozen=True)
class BeamTuning(Tuning):
    """The tuning values of the builder.

    Attributes:
        split_bytes: the bytes of a file that one worker reads at a time.
        bundle_time: the seconds after which a live read defers its remainder, so that a runner may commit what has been
            done.
    """

    split_bytes: int = 16 << 20
    bundle_time: float = 1.0


DEFAULT_TUNING = BeamTuning()


class Runner:
    """Runs pipelines. temporary: the folder for exchanged files; "": a local one."""

    def __init__(self, conf: Sequence[tuple[str, str]]) -> None:
        """Checks the options.

        Args:
            conf: options by name; the value of a switch is ``true``.

        Raises:
            BuilderError: there is no such runner, or an option is unknown or has a wrong value. Only remote runners may
                have options that Beam does not know.
        """
        self.flags = [f"--{name}" if value == "true" else f"--{name}={value}" for name, value in conf]
        with preserved_logging():
            with _argument_errors():
                options = _SETUP.PipelineOptions(self.flags)
                known_options = options.get_all_options()
                all_options = options.get_all_options(retain_unknown_options=True)
            self.name = options.view_as(_SETUP.StandardOptions).runner or LOCAL
            self.temporary = options.view_as(_SETUP.GoogleCloudOptions).temp_location or ""
            _check_runner(self.name)
        unknown = [name for name in all_options if name not in known_options]
        if unknown and self.name.rpartition(".")[2] in _LOCAL:
            hint = did_you_mean(unknown[0], known_options) or "Beam's documentation lists them: `--conf NAME=VALUE`"
            raise BuilderError(f"Beam has no option `{unknown[0]}`", hint=hint)

    def check_live(self) -> None:
        """Raises BuilderError if the runner is known to support no unbounded reads, or to lose a part of them."""
        name = self.name.rpartition(".")[2]
        if name == "BundleBasedDirectRunner":
            raise BuilderError(f"`{name}` takes no unbounded reads, as live sources are", hint="leave `runner` out")
        if _SETUP.PipelineOptions(self.flags).view_as(_SETUP.DirectOptions).direct_num_workers != 1:
            hint = "leave `direct_num_workers` out: one worker processes live input"
            raise BuilderError("several workers of a local runner lose what an unbounded read puts off", hint=hint)

    def run(self, lay: Callable[[Any], object], live: bool = False) -> None:
        """Runs a pipeline to its end, and raises its error if it fails.

        Args:
            lay: adds the steps to the pipeline.
            live: whether it reads unbounded input.
        """
        flags = [*self.flags, "--streaming"] if live else self.flags
        with preserved_logging():
            pipeline = beam.Pipeline(runner=self.name, options=_SETUP.PipelineOptions(flags))
            lay(pipeline)
            pipeline.run().wait_until_finish()


@contextmanager
def _argument_errors() -> Iterator[None]:
    """Turns Beam's errors about options into ours; Beam parses them like a command line, and would end the process."""
    message = io.StringIO()
    try:
        with redirect_stderr(message):
            yield
    except SystemExit:
        reason = message.getvalue().strip().rpartition("error: ")[2]
        raise BuilderError(f"Beam does not take an option: {reason}") from None


def _check_runner(name: str) -> None:
    try:
        beam.runners.create_runner(name)
    except (ValueError, ImportError, AttributeError) as error:
        hint = did_you_mean(name, _SETUP.StandardOptions.KNOWN_RUNNER_NAMES)
        raise BuilderError(f"there is no runner `{name}`: {error}", hint=hint) from None
