# Every target is what a person would type by hand; CI runs the same ones.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
MODEL  ?= qwen2.5-coder-0.5b
PORT   ?= 8000
ARGS   ?=
SOURCES := $(shell find csrc -type f) CMakeLists.txt pyproject.toml

.PHONY: serve test test-fast test-exhaustive sanitize check clean
.PHONY: bench bench-speculation bench-concurrency bench-two-by-two

$(VENV)/made:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	touch $@

$(VENV)/installed: $(VENV)/made $(SOURCES)
	$(BIN)/pip install --quiet "scikit-build-core>=1.0" "nanobind>=2.4"
	$(BIN)/pip install --quiet --no-build-isolation --editable .
	touch $@

$(VENV)/dev: $(VENV)/installed
	$(BIN)/pip install --quiet --no-build-isolation --editable ".[dev]"
	touch $@

serve: $(VENV)/installed
	$(BIN)/twostroke serve $(MODEL) --port $(PORT) $(ARGS)

test: $(VENV)/dev
	$(BIN)/twostroke pull smollm2-135m
	$(BIN)/twostroke pull qwen2.5-coder-0.5b
	$(BIN)/pytest -m "not exhaustive"

test-fast: $(VENV)/dev
	$(BIN)/pytest -m "not model and not slow and not exhaustive"

test-exhaustive: $(VENV)/dev
	$(BIN)/pytest -m exhaustive

# The kernels under the address and undefined-behaviour sanitizers, in an environment of their own.  Python itself is
# not instrumented, so the sanitizer is loaded before it, with the C++ library whose exceptions it follows.
SANITIZED := build/sanitize
SANITIZER := $(shell $(CXX) -print-file-name=libasan.so) $(shell $(CXX) -print-file-name=libstdc++.so)

$(SANITIZED)/installed: $(SOURCES)
	$(PYTHON) -m venv $(SANITIZED)/venv
	$(SANITIZED)/venv/bin/pip install --quiet "scikit-build-core>=1.0" "nanobind>=2.4"
	$(SANITIZED)/venv/bin/pip install --quiet --no-build-isolation -Cbuild-dir=$(SANITIZED)/cmake \
	  -Ccmake.define.TWOSTROKE_SANITIZE=ON --editable ".[dev]"
	touch $@

sanitize: $(SANITIZED)/installed
	LD_PRELOAD="$(SANITIZER)" ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1 \
	  $(SANITIZED)/venv/bin/pytest -m "not model and not slow and not exhaustive" tests/runtime $(ARGS)

check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/dev
	$(BIN)/python -m bench $(ARGS)

bench-speculation bench-concurrency bench-two-by-two: bench-%: $(VENV)/dev
	$(BIN)/python -m bench $* $(ARGS)

clean:
	rm -rf build $(VENV)
