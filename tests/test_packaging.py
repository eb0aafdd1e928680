"""The distributed package: complete, without duplicates, and usable in an empty environment outside the checkout."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import squall
from squall import plugins
from squall.builders.spark import java

ROOT = Path(__file__).parent.parent
STAGES = ("lexers", "translators", "planners", "builders")
PACKAGED = (".py", ".lark", ".jena", ".properties", ".typed")
PROJECTS = Path("squall/cli/projects")
"""The programs with which `squall new` starts, whatever their suffixes."""

PROGRAM = """@prefix : <http://example.org/>.
[anc: (?a :parent ?b) -> (?a :ancestor ?b)]
[far: (?a :parent ?b) (?b :ancestor ?c) -> (?a :ancestor ?c)]
"""
DATA = """<http://example.org/ann> <http://example.org/parent> <http://example.org/bob> .
<http://example.org/bob> <http://example.org/parent> <http://example.org/cat> .
"""
DERIVED = {
    "<http://example.org/ann> <http://example.org/ancestor> <http://example.org/bob> .",
    "<http://example.org/bob> <http://example.org/ancestor> <http://example.org/cat> .",
    "<http://example.org/ann> <http://example.org/ancestor> <http://example.org/cat> .",
}


SUBMITTED = """
import squall
from squall.builders.spark import session
from squall.rdf import Event, Triple, iri

def where(batches):
    import pyarrow
    import squall
    for _ in batches:
        pass
    yield pyarrow.RecordBatch.from_pydict({"place": [squall.__file__]})

known = session()
assert known.conf.get("spark.master").startswith("local-cluster")
plan = squall.plan(squall.compile("family.jena"))
names = [iri(f"http://example.org/{name}") for name in ("ann", "bob", "cat", "parent")]
events = [Event(time, (Triple(names[time], names[3], names[time + 1]),)) for time in range(2)]
for output in squall.build(plan, "spark").run([events]):
    print(output.fact)
print(squall.__file__)
print(*{row.place for row in known.range(4).repartition(2).mapInArrow(where, "place string").collect()})
"""


def setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def folders() -> Iterator[Path]:
    """Returns the folders of the checkout that hold modules of the package."""
    for top in ("squall", *STAGES):
        for module in sorted((ROOT / top).rglob("*.py")):
            if not any(parent.is_symlink() for parent in module.parents):
                yield module.parent


def packaged() -> set[str]:
    """Returns the files that a distribution has to hold, by their place under ``squall/``."""
    results = {str(file.relative_to(ROOT)) for file in (ROOT / PROJECTS).glob("*/*")}
    for folder in set(folders()):
        inside = folder.relative_to(ROOT)
        place = inside if inside.parts[0] == "squall" else Path("squall") / inside
        results |= {str(place / file.name) for file in folder.iterdir() if file.suffix in PACKAGED}
    return results


def test_every_package_is_listed() -> None:
    listed = setup_cfg()["options"]["packages"].split()
    inside = {".".join(folder.relative_to(ROOT).parts) for folder in folders()}
    assert {name if name.split(".")[0] == "squall" else f"squall.{name}" for name in inside} == set(listed)
    assert len(listed) == len(set(listed))


def test_the_version_is_that_of_the_module() -> None:
    # squall.plugins reads it from setup.cfg as text, so it cannot be `attr: squall.__version__` there.
    assert setup_cfg()["metadata"]["version"] == squall.__version__


def test_every_package_is_a_regular_one() -> None:
    assert [str(folder) for folder in set(folders()) if not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("stage", STAGES)
def test_the_checkout_links_its_stages(stage: str) -> None:
    assert os.readlink(ROOT / "squall" / stage) == f"../{stage}"


def absent(entry: EntryPoint) -> str:
    """Returns the requirements of an entry point that are not installed."""
    try:
        entry.load()
    except ModuleNotFoundError as error:
        if not (error.name or "squall").startswith("squall"):
            return error.name or ""
        raise
    return ""


def test_every_entry_point_loads() -> None:
    for group, lines in setup_cfg()["options.entry_points"].items():
        if group == plugins.EXTENSIONS:  # their values name languages, not objects
            continue
        for line in filter(None, lines.splitlines()):
            name, _, value = line.partition(" = ")
            entry = EntryPoint(name, value, group)
            if missing := absent(entry):
                assert entry.extras, missing
            else:
                assert entry.load() is not None


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds an sdist of the checkout, and a wheel from that sdist, in a folder."""
    copy = tmp_path_factory.mktemp("checkout") / "squall"
    # Of a copy, because building leaves folders behind, and takes what it finds in them the next time.
    ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests", "docs")
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
    out = copy / "dist"
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy), cwd=copy)
    return out


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    (result,) = distributions.glob("*.whl")
    return result


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder with the programs of an environment in which only the wheel is installed."""
    home = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(home, symlinks=True)
    paths = sysconfig.get_paths(vars={"base": str(home), "platbase": str(home)}, scheme="venv")
    # What squall depends on is lent by the running environment, so that no network is needed. A path file adds the
    # folder only; it does not read the path files in it, which would make squall itself importable from the checkout.
    Path(paths["purelib"], "lent.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    python = Path(paths["scripts"], "python")
    run(sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    return python.parent


def run(*command: str, cwd: Path | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    outputs = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert outputs.returncode == 0, outputs.stdout + outputs.stderr
    return outputs.stdout


@pytest.mark.more
def test_the_sdist_holds_each_file_once(distributions: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert len(names) == len(set(names))
    under = {name for name in names if Path(name).suffix in PACKAGED or PROJECTS in Path(name).parents[1:]}
    placed = {f"squall/{name}" if name.split("/")[0] in STAGES else name for name in under}
    assert placed == packaged()
    assert {"LICENSE", "README.md", "setup.cfg", "pyproject.toml"} <= set(names)


@pytest.mark.more
def test_the_wheel_holds_each_file_once_under_squall(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    assert {name for name in names if ".dist-info/" not in name} == packaged()


@pytest.mark.more
def test_the_installed_package_is_used(installed: Path, tmp_path: Path) -> None:
    where = run(
        str(installed / "python"), "-c", "import squall, squall.lexers; print(squall.lexers.__file__)", cwd=tmp_path
    )
    assert Path(where.strip()).is_relative_to(installed.parent)


@pytest.mark.more
def test_the_installed_package_finds_its_stages(installed: Path, tmp_path: Path) -> None:
    outputs = run(str(installed / "squall"), "list", cwd=tmp_path)
    groups = setup_cfg()["options.entry_points"]
    for stage in STAGES:
        for line in groups[f"squall.{stage}"].split("\n"):
            assert line.partition(" = ")[0] in outputs


@pytest.mark.more
def test_the_installed_package_runs_a_program(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "family.jena").write_text(PROGRAM)
    (tmp_path / "data.nt").write_text(DATA)
    derived = run(str(installed / "squall"), "build", "family.jena", "--source", "data.nt", cwd=tmp_path)
    assert set(derived.splitlines()) == DERIVED


@pytest.fixture
def archive(wheel: Path, tmp_path: Path) -> Path:
    """Returns the wheel in the form that ``--py-files`` accepts."""
    return Path(shutil.copy(wheel, tmp_path / "squall.zip"))


@pytest.mark.more
def test_the_builder_is_found_in_a_zip_file_by_a_relative_path(archive: Path) -> None:
    """Spark's workers have it as ``./squall.zip``."""
    code = "import sys; sys.path.insert(0, './squall.zip'); import squall.builders.spark as at; print(at.__file__)"
    assert run(sys.executable, "-c", code, cwd=archive.parent).startswith("./squall.zip/")


@pytest.mark.spark
@pytest.mark.slow
def test_the_wheel_goes_with_a_job_that_is_submitted(archive: Path) -> None:
    pyspark = pytest.importorskip("pyspark")
    java.ensure()
    (archive.parent / "family.jena").write_text(PROGRAM)
    (archive.parent / "job.py").write_text(SUBMITTED)
    submit = str(Path(pyspark.__file__).with_name("bin") / "spark-submit")
    conf = ["--conf", f"spark.pyspark.python={sys.executable}", "--conf", "spark.squall.maxSingleTaskRows=0"]
    master = ["--master", "local-cluster[2,1,1024]", "--conf", "spark.ui.enabled=false"]
    lines = run(submit, *master, *conf, "--py-files", str(archive), "job.py", cwd=archive.parent).splitlines()
    assert set(lines[:-2]) == DERIVED
    assert lines[-2] == f"{archive}/squall/__init__.py"
    assert lines[-1] == "./squall.zip/squall/__init__.py", "of executors in processes of their own"


@pytest.mark.more
def test_the_installed_package_finds_its_rule_sets(installed: Path, tmp_path: Path) -> None:
    code = "import squall; from squall import rulesets; print(len(squall.compile(rulesets.path('rhodf')).subsystems))"
    assert run(str(installed / "python"), "-c", code, cwd=tmp_path).strip() == "6"
