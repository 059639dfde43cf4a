# Every target is what a person would type by hand; CI runs the same ones.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
MODEL  ?= qwen2.5-coder-0.5b
PORT   ?= 8000
ARGS   ?=
SOURCES := $(shell find csrc -type f) CMakeLists.txt pyproject.toml

.PHONY: serve test test-fast test-exhaustive test-clients test-arm sanitize fuzz check clean
.PHONY: bench bench-speculation bench-concurrency bench-two-by-two bench-never-worse bench-first-token

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
	$(BIN)/pytest -m "not exhaustive and not clients"

test-fast: $(VENV)/dev
	$(BIN)/pytest -m "not model and not slow and not exhaustive and not clients"

test-exhaustive: $(VENV)/dev
	$(BIN)/pytest -m exhaustive

# The clients of npm, which `make test` tries too where it finds npm; here they must be there.
test-npm: $(VENV)/dev
	$(BIN)/twostroke pull qwen2.5-coder-0.5b
	TWOSTROKE_NPM_REQUIRED=1 $(BIN)/pytest tests/serve/test_npm.py $(ARGS)

# LiteLLM, instructor and lm-eval against a live server.  They are large, and instructor needs an older openai client than
# `.venv` has, so they have an environment of their own.
CLIENTS := build/clients

$(CLIENTS)/installed: $(SOURCES)
	$(PYTHON) -m venv $(CLIENTS)/venv
	$(CLIENTS)/venv/bin/pip install --quiet "scikit-build-core>=1.0" "nanobind>=2.4"
	$(CLIENTS)/venv/bin/pip install --quiet --no-build-isolation -Cbuild-dir=$(CLIENTS)/cmake \
	  --editable ".[dev,clients]"
	touch $@

test-clients: $(CLIENTS)/installed
	$(CLIENTS)/venv/bin/twostroke pull qwen2.5-coder-0.5b
	$(CLIENTS)/venv/bin/pytest -m clients $(ARGS)

# The kernels under the address and undefined-behaviour sanitizers, in an environment of their own.  Python itself is
# not instrumented, so the sanitizer is loaded before it, with the C++ library whose exceptions it follows.  A report
# ends the run, so pytest must not keep what the process itself prints.
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
	  $(SANITIZED)/venv/bin/pytest --capture=sys -m "not model and not slow and not exhaustive" tests/runtime $(ARGS)

# The kernels as programs of their own, without Python (tests/native).
NATIVE := cmake -DCMAKE_BUILD_TYPE=Release -S tests/native -B
BITS   := grep ^portable

# Cross-compiled and emulated: the Arm path against the portable one, and the portable one against this machine's.
test-arm:
	$(NATIVE) build/native && cmake --build build/native --target compare_paths
	$(NATIVE) build/arm -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/tests/native/aarch64.cmake
	cmake --build build/arm --target compare_paths
	build/native/compare_paths > build/native/bits
	qemu-aarch64 -cpu max build/arm/compare_paths > build/arm/bits || { cat build/arm/bits; exit 1; }
	cat build/arm/bits
	$(BITS) build/native/bits > build/native/portable
	$(BITS) build/arm/bits | diff build/native/portable -

# SECONDS of random weights, under the sanitizers.
SECONDS ?= 60
SEED    ?= 1
fuzz:
	$(NATIVE) build/fuzz -DTWOSTROKE_SANITIZE=ON && cmake --build build/fuzz --target fuzz_pack
	build/fuzz/fuzz_pack -max_total_time=$(SECONDS) -seed=$(SEED)

check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/dev
	$(BIN)/python -m bench $(ARGS)

bench-speculation bench-concurrency bench-two-by-two bench-never-worse bench-first-token: bench-%: $(VENV)/dev
	$(BIN)/python -m bench $* $(ARGS)

clean:
	rm -rf build $(VENV)
