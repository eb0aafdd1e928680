"""The options of a pipeline, by Beam's own names, and the runner that they name."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any

from squall.builders.beam.beam_import import beam, logging_kept
from squall.errors import BuilderError, did_you_mean

LOCAL = "FnApiRunner"
"""The runner if none is named: in this process. (Beam's own default would fetch a program from the network.)"""
_SETUP = beam.options.pipeline_options
_LOCAL = _SETUP.StandardOptions.LOCAL_RUNNERS


class Runner:
    """What runs pipelines. temporary: the folder that it reads and writes in; "": a local one."""

    def __init__(self, conf: Sequence[tuple[str, str]]) -> None:
        """conf: options by name; of a switch the value is ``true``.

        Raises BuilderError where there is no such runner, an option has a wrong value, or it is unknown. What a runner
        elsewhere knows is for it to say.
        """
        self.flags = [f"--{name}" if value == "true" else f"--{name}={value}" for name, value in conf]
        with logging_kept():
            with _argument_errors():
                options = _SETUP.PipelineOptions(self.flags)
                known = options.get_all_options()
                every = options.get_all_options(retain_unknown_options=True)
            self.name = options.view_as(_SETUP.StandardOptions).runner or LOCAL
            self.temporary = options.view_as(_SETUP.GoogleCloudOptions).temp_location or ""
            _check_runner(self.name)
        unknown = [name for name in every if name not in known]
        if unknown and self.name.rpartition(".")[2] in _LOCAL:
            hint = did_you_mean(unknown[0], known) or "Beam's documentation lists them: `--conf NAME=VALUE`"
            raise BuilderError(f"Beam has no option `{unknown[0]}`", hint=hint)

    def check_live(self) -> None:
        """Raises BuilderError where it is known to take no unbounded reads, or to lose a part of them."""
        name = self.name.rpartition(".")[2]
        if name == "BundleBasedDirectRunner":
            raise BuilderError(f"`{name}` takes no unbounded reads, as live sources are", hint="leave `runner` out")
        if _SETUP.PipelineOptions(self.flags).view_as(_SETUP.DirectOptions).direct_num_workers != 1:
            hint = "leave `direct_num_workers` out: what comes live is worked off by one worker"
            raise BuilderError("several workers of a local runner lose what an unbounded read puts off", hint=hint)

    def run(self, lay: Callable[[Any], None], live: bool = False) -> None:
        """Runs a pipeline to its end. lay: puts into it what it does; live: it reads what is unbounded. Raises what the
        runner raises if it fails."""
        flags = [*self.flags, "--streaming"] if live else self.flags
        with logging_kept():
            pipeline = beam.Pipeline(runner=self.name, options=_SETUP.PipelineOptions(flags))
            lay(pipeline)
            pipeline.run().wait_until_finish()


@contextmanager
def _argument_errors() -> Iterator[None]:
    """Makes errors of Beam's, which parses options as those of a command line and ends the process, ours."""
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            yield
    except SystemExit:
        reason = said.getvalue().strip().rpartition("error: ")[2]
        raise BuilderError(f"Beam does not take an option: {reason}") from None


def _check_runner(name: str) -> None:
    try:
        beam.runners.create_runner(name)
    except (ValueError, ImportError, AttributeError) as error:
        hint = did_you_mean(name, _SETUP.StandardOptions.KNOWN_RUNNER_NAMES)
        raise BuilderError(f"there is no runner `{name}`: {error}", hint=hint) from None
