PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Programs that tests start shall find the bytecode of packages; without it, each one compiles them anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo docs test ray browser lint bench evidence reproduce release clean

help:  ## show what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /  make \1\t/' | expand -t 20

setup: $(READY)  ## make .venv and install everything into it

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "gosprl needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
		{ echo "$(PYTHON) has no ensurepip; install it first (on Debian and Ubuntu: apt install python3-venv)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(READY)  ## collect 10 samples of every pair of the 4-room gridworld, beside the limit and a random walk
	$(BIN)/gosprl collect four_room43 --need 10 --seed 0 --compare

docs: $(READY)  ## build the documentation into site/, strictly; read it from there, or by: python -m http.server -d site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

# The first one needs kernels that are not compiled yet, and fills the cache that all tests share, where that is empty.
COLD := tests/kernels/test_specialisations.py

test: $(READY)  ## run the tests, on all cores
	$(BIN)/python -m pytest $(COLD) tests/warm_up.py
	$(BIN)/python -m pytest -n auto $(addprefix --deselect ,$(COLD))

ray: $(READY)  ## install Ray into .venv, and run the tests that need it
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[ray]'
	$(BIN)/python -m pytest -W default tests_ray

browser: $(READY)  ## look at pages with Chromium, which is installed apart; writes pictures of them to screenshots
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[browser]'
	$(BIN)/python -m pytest -W default --screenshots screenshots tests_browser

lint: $(READY)  ## check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(READY)  ## speed and memory, side by side with other solvers, and growth; writes benchmarks/results
	$(BIN)/python benchmarks/planning.py
	$(BIN)/python benchmarks/average.py
	$(BIN)/python benchmarks/prices.py
	$(BIN)/python benchmarks/storm.py
	$(BIN)/python benchmarks/counting.py
	$(BIN)/python benchmarks/observing.py
	$(BIN)/python benchmarks/discovering.py
	$(BIN)/python benchmarks/processes.py
	$(BIN)/python benchmarks/fleet_transport.py
	$(BIN)/python benchmarks/keeping.py
	$(BIN)/python benchmarks/watching.py
	$(BIN)/python benchmarks/reporting.py
	$(BIN)/python benchmarks/exchange.py
	$(BIN)/python benchmarks/collecting.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/prior.py
	$(BIN)/python benchmarks/before.py
	$(BIN)/python benchmarks/distances.py
	$(BIN)/python benchmarks/applications.py
	$(BIN)/python benchmarks/newcomer.py

evidence: $(READY)  ## the long statistical checks; writes evidence/results
	$(BIN)/python -m evidence.coverage
	$(BIN)/python -m evidence.fleet_coverage
	$(BIN)/python -m evidence.fleet_labour
	$(BIN)/python -m evidence.fleet_processes
	$(BIN)/python -m evidence.fleet_faults
	$(BIN)/python -m evidence.lower_bounds
	$(BIN)/python -m evidence.known_dynamics
	$(BIN)/python -m evidence.unknown_dynamics
	$(BIN)/python -m evidence.near_limit
	$(BIN)/python -m evidence.where_near
	$(BIN)/python -m evidence.few_samples
	$(BIN)/python -m evidence.knowledge
	$(BIN)/python -m evidence.tours
	$(BIN)/python -m evidence.size
	$(BIN)/python -m evidence.coordinates
	$(BIN)/python -m evidence.price
	$(BIN)/python -m evidence.guard
	$(BIN)/python -m evidence.guard_states
	$(BIN)/python -m evidence.focused
	$(BIN)/python -m evidence.any_system
	$(BIN)/python -m evidence.faults
	$(BIN)/python -m evidence.kills
	$(BIN)/python -m evidence.flips
	$(BIN)/python -m evidence.histories
	$(BIN)/python -m evidence.probe
	$(BIN)/python -m evidence.guarantees
	$(BIN)/python -m evidence.seams
	$(BIN)/python -m evidence.reach
	$(BIN)/python -m evidence.samples
	$(BIN)/python -m evidence.exchange
	$(BIN)/python -m evidence.data_order
	$(BIN)/python -m evidence.rivals
	$(BIN)/python -m evidence.forecast
	$(BIN)/python -m evidence.picture

reproduce: $(READY)  ## the paper's figures and tables at both widths, 30 runs each (the copy in docs/reproduction: 10), about an hour on two idle cores
	$(BIN)/gosprl reproduce all --out reproduction
	rm -rf docs/reproduction && mkdir docs/reproduction
	cd reproduction && tar -cf - index.md */summary.csv */figure*.png | tar -C ../docs/reproduction -xf -

release: $(READY)  ## build the wheel and the source distribution, check them, install and run both elsewhere; uploads nothing
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[release]'
	$(BIN)/python tools/release.py

clean:  ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
