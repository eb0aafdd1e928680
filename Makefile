# Everything that is done with a checkout. `make demo` and `make test` need Python 3.11 or later and nothing else.

PYTHON ?= python3
EXTRAS ?= dev,spark,java,live,beam,jelly,metrics,zstd
WORK ?= sensors rdfs
VENV = .venv
BIN = $(VENV)/bin
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# The tests start many processes, which would compile each module anew.
unexport PYTHONDONTWRITEBYTECODE
PYTEST = $(BIN)/python -m pytest -q --numprocesses $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder --durations 30 --durations-min 5

.PHONY: demo test test-more test-all dist brokers jena check style types docs site bench clean

demo: $(VENV)/.ready            ## rules over 100,000 triples, in process and on Spark, and that both give the same
	$(BIN)/python docs/demo/run.py

test: $(VENV)/.ready brokers    ## every module, language and builder, most laws with few examples: at most 8 minutes on two cores
	SQUALL_EXAMPLES=few $(PYTEST) -m "not slow and not more"

test-more: $(VENV)/.ready brokers jena  ## a quarter of the examples of the laws, and the tests that take seconds each
	SQUALL_EXAMPLES=some $(PYTEST) -m "not slow and (more or hypothesis)"

test-all: $(VENV)/.ready brokers jena   ## all tests; takes hours
	$(PYTEST)

brokers:                        ## mosquitto and redis-server for tests, from Debian's packages; needs no root
	@sh tests/brokers.sh $(VENV)/brokers || echo "no brokers: the tests that need them are skipped"

jena:                           ## Apache Jena as an oracle of tests, from Debian's packages; needs no root, and a JDK
	@sh tests/jena.sh $(VENV)/jena || echo "no Jena: the tests that compare with it are skipped"

check: style types test test-more  ## what has to pass before a change lands

style: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready
	$(BIN)/mypy

docs: $(VENV)/.ready            ## runs every example and notebook in README.md and docs/
	$(BIN)/python -m pytest -q tests/test_docs.py tests/test_notebook_pages.py

site: $(VENV)/.docs             ## the documentation as a web site, in site/; a warning or a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet --site-dir site

dist: $(VENV)/.ready            ## sdist and wheel in dist/, checked
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/python -m twine check --strict dist/*

bench: $(VENV)/.ready           ## e.g. make bench WORK="spark-q3 --peer pyspark-batch"
	$(BIN)/python -m tests.bench $(WORK)

clean:
	rm -rf $(VENV) .cache build dist site *.egg-info

# Made again when the dependencies or the entry points may have changed.
$(VENV)/.ready: setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("squall needs Python 3.11 or later: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@
