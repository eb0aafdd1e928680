"""Plug-ins of any distribution are found by name, and errors in one name the plug-in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import squall
from squall import functions, plugins
from squall.checking import lint
from squall.errors import PluginError, UsageError
from squall.model import rules
from squall.testing import assert_outputs
from tests.conftest import Install

ROOT = Path(__file__).parent.parent


def test_built_in_stages_load_lazily() -> None:
    assert {"greedy", "rete"} <= set(plugins.names(plugins.PLANNERS))
    assert {"file", "stdin"} <= set(plugins.names(plugins.SOURCES))
    assert all(plugins.names(group) for group in plugins.GROUPS)


def test_a_plugin_of_another_distribution_is_found(install: Install) -> None:
    install("other", "other_planner", "def plan(system): return 'planned'", planners="mine = other_planner:plan")
    assert "mine" in plugins.names(plugins.PLANNERS)
    assert plugins.load(plugins.PLANNERS, "mine")(None) == "planned"
    assert plugins.where(plugins.PLANNERS, "mine") == ("other 1.0", "other_planner:plan")


def test_where_names_our_distribution() -> None:
    place = plugins.where(plugins.PLANNERS, "rete")
    assert place.distribution.startswith("squall ")
    assert place.object == "squall.planners.rete:plan"


def test_unknown_with_near_misses() -> None:
    with pytest.raises(PluginError, match="there is no planner `ret`\nhint: did you mean `rete`"):
        plugins.load(plugins.PLANNERS, "ret")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(PluginError, match=r"hint: there are: `file`, `http`, .*`stdin`"):
        plugins.load(plugins.SOURCES, "quux")


def test_claimed_twice(install: Install) -> None:
    install("one", "one_planner", "plan = 1", planners="both = one_planner:plan")
    install("two", "two_planner", "plan = 2", planners="both = two_planner:plan")
    with pytest.raises(PluginError) as caught:
        plugins.load(plugins.PLANNERS, "both")
    assert "claimed twice" in str(caught.value)
    assert "`one`" in str(caught.value)
    assert "`two`" in str(caught.value)


def test_the_same_target_twice_is_one_plugin(install: Install) -> None:
    install("again", "again_module", "", planners="rete = squall.planners.rete:plan")
    assert callable(plugins.load(plugins.PLANNERS, "rete"))


def test_a_missing_dependency_names_the_extra(install: Install) -> None:
    install("needy", "needy_builder", "import no_such_engine", builders="needy = needy_builder:build [engine]")
    with pytest.raises(PluginError) as caught:
        plugins.load(plugins.BUILDERS, "needy")
    assert str(caught.value) == (
        "plug-in error: the builder `needy` needs `no_such_engine`, which is not installed\n"
        "hint: pip install 'needy[engine]'"
    )
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_missing_dependency_without_an_extra_names_the_module(install: Install) -> None:
    install("bare", "bare_builder", "import no_such_engine.part", builders="bare = bare_builder:build")
    with pytest.raises(PluginError, match="pip install 'no_such_engine'"):
        plugins.load(plugins.BUILDERS, "bare")


def test_missing_dependency_met_later(install: Install) -> None:
    install("late", "late_builder", "def build(): import no_such_engine", builders="late = late_builder:build [x]")
    build = plugins.load(plugins.BUILDERS, "late")
    with pytest.raises(PluginError, match=r"late\[x\]"), plugins.dependencies(plugins.BUILDERS, "late"):
        build()


@pytest.mark.parametrize(
    ("code", "target", "reason"),
    [
        ("", "no_such_module:build", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("", "faulty_builder:build", "AttributeError: module 'faulty_builder' has no attribute 'build'"),
        ("1 / 0", "faulty_builder:build", "ZeroDivisionError: division by zero"),
        ("build = squal", "faulty_builder:build", "NameError: name 'squal' is not defined"),
        ("from squall.contracts import Compiler", "faulty_builder:build", "ImportError: cannot import name 'Compiler'"),
    ],
)
def test_a_plugin_that_cannot_be_imported_names_its_package(
    code: str, target: str, reason: str, install: Install
) -> None:
    install("faulty", "faulty_builder", code, builders=f"faulty = {target}")
    with pytest.raises(PluginError) as caught:
        plugins.load(plugins.BUILDERS, "faulty")
    assert caught.value.message.startswith(f"the builder `faulty` of `faulty 1.0` cannot be loaded: {reason}")
    assert caught.value.hint == "update or uninstall `faulty`"
    assert caught.value.__cause__ is not None


def test_a_plugin_that_is_not_callable_has_not_the_interface_of_its_kind(install: Install) -> None:
    install("stale", "stale_planner", "plan = {'nodes': []}", planners="stale = stale_planner:plan")
    with pytest.raises(PluginError, match=r"the planner `stale` of `stale 1\.0` is not callable"):
        plugins.load(plugins.PLANNERS, "stale")


def test_a_plugin_for_another_interface_version_is_refused_without_importing_it(install: Install) -> None:
    install("future", "future_planner", "1 / 0", planners="new = future_planner:plan", interface="v9 = future_planner")
    with pytest.raises(PluginError, match=r"`future 1\.0` is written for the plug-in interface v9; this squall has v1"):
        plugins.load(plugins.PLANNERS, "new")


def test_a_plugin_for_several_interface_versions_is_loaded_if_ours_is_among_them(install: Install) -> None:
    versions = "v1 = both_planner\nv2 = both_planner"
    install("both", "both_planner", "def plan(system): ...", planners="both = both_planner:plan", interface=versions)
    assert callable(plugins.load(plugins.PLANNERS, "both"))


@pytest.mark.usefixtures("empty_registry")
@pytest.mark.parametrize(
    ("code", "interface", "reason"),
    [
        ("import squal", "v1 = broken", "`broken 1.0`: the function `broken` needs `squal`, which is not installed"),
        ("FUNCTIONS = (nothing,)", "v1 = broken", "`broken 1.0` cannot be loaded: NameError: name 'nothing'"),
        ("FUNCTIONS = ('urn:f', abs)", "v1 = broken", "`broken 1.0`: TypeError: 'urn:f' is no Function"),
        ("FUNCTIONS = 7", "v1 = broken", "`broken 1.0`: TypeError: 'int' object is not iterable"),
        ("FUNCTIONS = ()", "v0 = broken", "`broken 1.0` is written for the plug-in interface v0"),
    ],
)
def test_a_broken_function_library_is_a_warning_and_harms_no_language(
    code: str, interface: str, reason: str, install: Install
) -> None:
    install("broken", "broken", code, functions="broken = broken:FUNCTIONS", interface=interface)
    with pytest.warns(plugins.PluginWarning, match=f"{re.escape(reason)}.*; it is left out"):
        system = squall.compile("[r: (?a ?p ?b) sum(1, 2, ?c) -> (?a ?p ?c)]", lexer="jena")
    assert [rule.name for rule in rules(system)] == ["r"]


def test_a_broken_check_is_a_warning(install: Install) -> None:
    install("broken", "broken_check", "import nothing_at_all", checks="mine = broken_check:check")
    with pytest.warns(plugins.PluginWarning, match=r"the check `mine` of `broken 1.0`.*needs `nothing_at_all`"):
        assert lint("[r: (?a ?p ?b) -> (?a ?p ?a)]", lexer="jena") is not None


@pytest.mark.usefixtures("empty_registry")
def test_a_library_that_redefines_a_function_of_another_is_left_out(install: Install) -> None:
    code = "from squall.functions import Builtin\nFUNCTIONS = (Builtin('sum', 'jena', 0, 0),)"
    install("rival", "rival_functions", code, functions="rival = rival_functions:FUNCTIONS")
    with pytest.warns(plugins.PluginWarning, match="`rival` redefines `sum`"):
        assert functions.builtins("jena")["sum"].least == 3


@pytest.mark.usefixtures("empty_registry")
def test_a_library_may_have_aggregates(install: Install) -> None:
    code = """
from squall.functions import aggregate_of
from squall.functions.values import integer

FUNCTIONS = (aggregate_of("http://example.org/size", lambda values: integer(len(values))),)
"""
    install("sizes", "size_functions", code, functions="sizes = size_functions:FUNCTIONS")
    query = "SELECT (<http://example.org/size>(?y) AS ?n) { ?x ?p ?y } GROUP BY ?p"
    assert_outputs(query, "1 :a :p 1, 2, 3", "1 ?n=3", lexer="sparql")


@pytest.mark.fault("P1")
def test_a_jena_program_loads_no_other_lexer_and_no_broken_one(install: Install, tmp_path: Path) -> None:
    install("broken", "broken_lexer", "1 / 0", lexers="broken = broken_lexer:lexer", extensions=".jenb = broken")
    (tmp_path / "rules.jena").write_text("[r: (?a ?p ?b) -> (?b ?p ?a)]")
    code = (
        "import sys, squall; squall.plan(squall.compile(sys.argv[1])); "
        "print(*sorted(name for name in sys.modules if name.startswith('squall.lexers.')), sep='\\n')"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[:1]])}
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path / "rules.jena")]
    modules = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert {name.split(".")[2] for name in modules} <= {"jena", "prefixes", "rdf12", "reading", "text"}
    assert "squall.lexers.jena" in modules


def test_by_extension() -> None:
    assert plugins.by_extension("a/family.jena") == "jena"


def test_by_extension_unknown() -> None:
    with pytest.raises(UsageError, match=r"the language of `family.foo` cannot be inferred.*\n.*\.jena.*--lexer"):
        plugins.by_extension("family.foo")


def test_by_extension_of_two_languages(install: Install) -> None:
    code = "def lexer(text, name): ..."
    install("rival", "rival_lexer", code, lexers="rival = rival_lexer:lexer", extensions=".jena = rival")
    with pytest.raises(UsageError, match="may be in `jena` or `rival`"):
        plugins.by_extension("family.jena")


def test_of_two_languages_with_an_extension_the_one_that_can_be_loaded_is_used(install: Install) -> None:
    code = "import no_such_engine"
    install("needy", "needy_lexer", code, lexers="needy = needy_lexer:lexer", extensions=".jena = needy")
    with pytest.warns(plugins.PluginWarning, match=r"`needy 1.0`: the lexer `needy` needs `no_such_engine`"):
        assert plugins.by_extension("family.jena") == "jena"


def test_the_language_of_an_extension_is_known_without_loading_its_lexer(install: Install) -> None:
    install("far", "far_lexer", "1 / 0", lexers="far = far_lexer:lexer", extensions=".far = far")
    assert plugins.by_extension("a.far") == "far"


def test_descriptions_are_read_without_importing(install: Install) -> None:
    code = '"""A module.\n\nMore."""\n1 / 0\ndef plan(system):\n    """Plans nothing at all. It is lazy."""\n'
    install("lazy", "lazy_planner", code, planners="lazy = lazy_planner:plan\nother = lazy_planner:other")
    assert plugins.description(plugins.PLANNERS, "lazy") == "Plans nothing at all."
    assert plugins.description(plugins.PLANNERS, "other") == "A module."


def test_requirements_of_an_extra_are_known_without_importing(install: Install) -> None:
    install("needy", "needy_builder", "", builders="needy = needy_builder:build [engine]")
    root = Path(plugins.importlib.metadata.distribution("needy")._path)  # type: ignore[attr-defined]
    with (root / "METADATA").open("a") as metadata:
        metadata.write("Provides-Extra: engine\nRequires-Dist: no-such-engine>=2; extra == 'engine'\n")
        metadata.write("Requires-Dist: click; extra == 'engine'\nRequires-Dist: absent; extra == 'other'\n")
    assert plugins.missing(plugins.BUILDERS, "needy") == ("no-such-engine",)
    assert plugins.requirement(plugins.BUILDERS, "needy") == "needy[engine]"
    assert plugins.missing(plugins.PLANNERS, "rete") == ()
