# SPDX-License-Identifier: Apache-2.0
# The front of the build: every habit of the project is one word here. CMake and Ninja do the work.
BUILD  := build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-all check bench bench-all fuzz docs dist install clean

help: ## this list
	@echo 'Sardonyx: load, check and run ONNX models.  make <word>:'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1@\2/p' Makefile | awk -F@ '{printf "%-12s %s\n", $$1, $$2}'

setup: ## install what building and testing need (apt, and .venv for Python)
	@scripts/setup all

build: ## build/sardonyx, build/libsardonyx.so, build/libsardonyx.a
	@scripts/setup build
	@test -f $(BUILD)/build.ninja || cmake --preset release -DSDX_BUILD_TESTS=OFF
	@cmake --build $(BUILD)

demo: build ## classify ten scans of digits with the model that ships, then time it
	$(BUILD)/sardonyx classify examples/digits/digits.onnx examples/digits/*.png --top 1
	$(BUILD)/sardonyx bench examples/digits/digits.onnx --runs 200

test: ## the tests that every commit passes
	@scripts/setup test
	@scripts/test $(TEST_FLAGS)

test-all: ## those, every CPU mask, sanitizers, thread counts, all models at hand, aarch64 under qemu
	@scripts/setup test
	@scripts/setup cross || echo "the stage aarch64 will be skipped"
	@scripts/test --all $(TEST_FLAGS)

check: build ## the rules: layers, sizes, bans, symbols, headers, format
	@scripts/setup check
	@scripts/check.py

bench: build ## time a short set of the models in SDX_ZOO against other engines
	@scripts/setup bench
	@bench/peers --set short --markdown docs/BENCHMARKS.md $(BENCH_FLAGS)

bench-all: build ## time all models that have a goal; every goal and what is reached
	@scripts/setup bench
	@bench/peers --set all --markdown docs/BENCHMARKS.md $(BENCH_FLAGS)

fuzz: ## every fuzzer for FUZZ_SECONDS (60) seconds
	@scripts/setup fuzz
	@cmake --preset fuzz
	@cmake --build $(BUILD)/fuzz --target $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
	@scripts/fuzz $(BUILD)/fuzz $(FUZZ_SECONDS)

docs: build ## write docs/operators.md and docs/ort_abi.md from the tables in the sources and tests
	scripts/gen_operators.py $(BUILD)/sardonyx > $(BUILD)/operators.md
	mv $(BUILD)/operators.md docs/operators.md
	scripts/gen_ort_table.py > $(BUILD)/ort_abi.md
	mv $(BUILD)/ort_abi.md docs/ort_abi.md

dist: ## dist/sardonyx.c and .h, the engine in two files, and an archive of what is committed
	@scripts/amalgamate.py dist
	@version=$$(sed -n 's/^project(sardonyx VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt) && \
	git archive --prefix=sardonyx-$$version/ -o dist/sardonyx-$$version.tar.gz HEAD && \
	echo "dist/sardonyx-$$version.tar.gz"

install: build ## into PREFIX (/usr/local), below DESTDIR when set
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean: ## remove everything that was built
	rm -rf $(BUILD) dist
