"""Plug-ins are found by name, wherever they come from, and what is wrong with one is said in its own words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from squall import plugins
from squall.errors import PluginError, UsageError

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes an installed distribution with one module and some entry points."""

    def install(distribution: str, module: str, code: str, **entry_points: str) -> None:
        root = tmp_path / distribution
        info = root / f"{distribution}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        groups = (f"[squall.{group}]\n{line}\n" for group, line in entry_points.items())
        (info / "entry_points.txt").write_text("\n".join(groups))
        (root / f"{module}.py").write_text(code)
        monkeypatch.syspath_prepend(str(root))

    return install


def test_ours_are_found_in_every_group_but_load_lazily() -> None:
    assert {"greedy", "rete"} <= set(plugins.names(plugins.PLANNERS))
    assert {"file", "stdin"} <= set(plugins.names(plugins.SOURCES))
    assert all(plugins.names(group) for group in plugins.GROUPS)


def test_a_plugin_of_another_distribution_comes_in_by_the_same_door(install: Install) -> None:
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


def test_unknown_and_nothing_like_it_lists_what_there_is() -> None:
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


def test_missing_dependency_says_what_to_install(install: Install) -> None:
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


def test_a_plugin_without_its_own_module_is_not_taken_for_a_missing_dependency(install: Install) -> None:
    install("broken", "broken_builder", "", builders="broken = no_such_module:build")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        plugins.load(plugins.BUILDERS, "broken")


def test_an_error_in_a_plugin_is_not_swallowed(install: Install) -> None:
    install("faulty", "faulty_builder", "1 / 0", builders="faulty = faulty_builder:build")
    with pytest.raises(ZeroDivisionError):
        plugins.load(plugins.BUILDERS, "faulty")


def test_by_extension() -> None:
    assert plugins.by_extension("a/family.jena") == "jena"


def test_by_extension_unknown() -> None:
    with pytest.raises(UsageError, match=r"the language of `family.foo` cannot be inferred.*\n.*\.jena.*--lexer"):
        plugins.by_extension("family.foo")


def test_by_extension_of_two_languages(install: Install) -> None:
    code = "class lexer: extensions = ('.jena',)"
    install("rival", "rival_lexer", code, lexers="rival = rival_lexer:lexer")
    with pytest.raises(UsageError, match="may be in `jena` or `rival`"):
        plugins.by_extension("family.jena")


def test_by_extension_hears_of_an_unusable_lexer_only_if_no_other_fits(install: Install) -> None:
    install("needy", "needy_lexer", "import no_such_engine", lexers="needy = needy_lexer:lexer")
    assert plugins.by_extension("family.jena") == "jena"
    with pytest.raises(PluginError, match="no_such_engine"):
        plugins.by_extension("family.foo")
