# Every target works from nothing: it brings its own tools. The work itself is in js/scripts.

JS := js/scripts
MODULES := js/node_modules/.package-lock.json
RUNS ?= 10000000
SOAK ?= 10000
# Compiled as by js/scripts/test.mjs, so that what make test has compiled is used again.
RUSTC_OF_TESTS = $(CURDIR)/$(JS)/$(shell clippy-driver --version >/dev/null 2>&1 && echo rustc-lints.sh || echo rustc-tests.sh)
SOAK_TEST = RUSTC_WORKSPACE_WRAPPER=$(RUSTC_OF_TESTS) cargo test --profile soak --locked

.PHONY: demo build test test-all test-native test-web test-js test-runtimes test-server test-browser check bench size pack serve fuzz soak soak-histories soak-queries soak-orders soak-units soak-browsers tools modules browser firefox webkit clean help
.DEFAULT_GOAL := help

help:
	@sed -n 's/^## //p' Makefile

## make demo          build everything, serve the demo page on localhost
demo: build
	node $(JS)/serve.mjs

## make build         the npm package in js/dist
build: tools $(MODULES)
	node $(JS)/build.mjs

## make test          the tests to run for every change: all on the host, the package in Node and Chromium, lints, sizes; the last line is "N passed, N failed"
test:
	node $(JS)/test.mjs --inner

## make test-all      all tests, as CI runs them: also Firefox, WebKit, workers, Deno, Bun, workerd, and the drivers of MongoDB
test-all:
	node $(JS)/test.mjs

## make test-native   Rust unit and integration tests on the host
test-native: $(MODULES)
	node $(JS)/test.mjs native

## make test-web      Rust tests in headless Chromium
test-web: tools browser $(MODULES)
	node $(JS)/test.mjs web

## make test-js       the built package under Node, and its types
test-js: tools $(MODULES)
	node $(JS)/test.mjs build js types

## make test-runtimes the built package in Node 24, Deno, Bun and workerd
test-runtimes: tools $(MODULES)
	node $(JS)/test.mjs build runtimes

## make test-server   the built package served to the driver for Node, mongosh, PyMongo and what Compass is built on; the command line
test-server: tools $(MODULES)
	node $(JS)/test.mjs build server

## make test-browser  the built package in headless Chromium, with both of its IndexedDB engines, in Firefox and in WebKit
test-browser: tools browser firefox webkit $(MODULES)
	node $(JS)/test.mjs build pages browser browsers

## make check         format, lints, floors, types, size budget
check: tools $(MODULES)
	node $(JS)/test.mjs build size check types
	cargo test --locked --quiet --test floors

## make bench         benchmarks; ratios within one run
bench: build browser bench/node_modules/.package-lock.json
	node bench/run.mjs
	node bench/queries.mjs
	node bench/aggregate.mjs
	node bench/tsbs.mjs
	node bench/cliffs.mjs
	node bench/operators.mjs
	node bench/shapes.mjs
	node bench/live.mjs
	node bench/live-queries.mjs
	node bench/live-queries-engine.mjs
	node bench/resends.mjs
	node bench/opening.mjs
	node bench/worker.mjs
	node bench/turns.mjs
	node bench/singles.mjs
	node bench/columns.mjs
	node bench/sizes.mjs
	node bench/wire.mjs
	node bench/files-out.mjs
	node bench/files.mjs

## make size          what a page downloads, against the budget
size: build
	node $(JS)/size.mjs

## make pack          dist/timepail.tgz, installable with npm
pack: build
	node $(JS)/pack.mjs --release

## make serve         the demo page, without building
serve: $(MODULES)
	node $(JS)/serve.mjs

## make fuzz          random columns into the decoders; RUNS=10000000 each
fuzz:
	@RUNS=$(RUNS) fuzz/run.sh

tools:
	@$(JS)/toolchain.sh wasm

browser:
	@$(JS)/toolchain.sh browser

firefox:
	@$(JS)/toolchain.sh firefox

webkit:
	@$(JS)/toolchain.sh webkit

modules: $(MODULES)

$(MODULES): js/package.json js/package-lock.json
	js/scripts/modules.sh
	@touch $@

bench/node_modules/.package-lock.json: bench/package.json bench/package-lock.json
	npm ci --prefix bench --no-progress
	@touch $@

## make soak          many more random histories and queries than make test; SOAK=10000 of each; make -k soak goes on after a failure
soak: soak-histories soak-queries soak-orders soak-units soak-browsers

soak-histories:
	SIM_SEEDS=$(SOAK) $(SOAK_TEST) --test histories sim -- --nocapture

soak-queries:
	CASES=$(SOAK) $(SOAK_TEST) --test generated -- --nocapture

soak-orders:
	INTERLEAVINGS_MAX=$(SOAK) $(SOAK_TEST) --test histories interleavings -- --nocapture

soak-units:
	PROPTEST_CASES=$(SOAK) $(SOAK_TEST) --lib

soak-browsers: tools browser firefox webkit $(MODULES)
	ALL_BROWSERS=1 node $(JS)/test.mjs build pages browser browsers

## make clean         what was built; tools in ~/.cache/timepail stay
clean:
	rm -rf target dist js/dist js/src/wasm js/.test-build js/node_modules webdriver.json bench/results bench/node_modules
