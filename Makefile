# Two commands do everything: `make demo` and `make test`.

SWIFT ?= swift
# What each goal needs from Debian; installed by packaging/require when it is missing.
BUILD_NEEDS = libarchive-dev libcurl4-openssl-dev libmagic-dev libpcre2-dev libsqlite3-dev libssl-dev libxxhash-dev \
	libyaml-dev
RUN_NEEDS = $(BUILD_NEEDS) libvips-tools python3
# The protocol's bash example reads its answer with jq; python3-jsonschema gives a second opinion on rules files;
# D-Bus with Python is the desktop that shows notifications; systemd has what looks at its units.
TEST_NEEDS = $(RUN_NEEDS) bindfs dbus jq libarchive-tools libnotify-bin openssl python3-dbus python3-gi \
	python3-jsonschema python3-yaml systemd xxhash
# The programs that the shipped plugins call. Their tests need them; Alight itself doesn't.
PLUGIN_NEEDS = python3 libvips-tools poppler-utils ffmpeg tesseract-ocr tesseract-ocr-eng tesseract-ocr-osd ocrmypdf \
	libarchive-tools rsync openssh-client clamav

# How long `make soak` goes on.
MINUTES ?= 60

.PHONY: build demo test plugins-deps test-plugins soak lint format check bench bench-quick example docs clean

## build: the release binary at .build/release/alight, and the plugins in Swift in their folders
build:
	@packaging/require $(BUILD_NEEDS)
	$(SWIFT) build --configuration release
	packaging/install-plugins .build/release

## demo: drop a photograph and a letter into a hot folder, and see what comes of it
demo:
	@packaging/require $(RUN_NEEDS)
	$(SWIFT) build --configuration release
	@packaging/demo .build/release/alight

## test: all tests, and at the end what failed
test:
	@packaging/require $(TEST_NEEDS) $(PLUGIN_NEEDS)
	$(SWIFT) build --build-tests
	packaging/install-plugins .build/debug
	SWIFT=$(SWIFT) packaging/run-tests
	python3 -m unittest discover --start-directory Tests/PluginTests

## plugins-deps: installs the programs that the shipped plugins call: some 100 MB, one to two minutes
plugins-deps:
	@packaging/require $(PLUGIN_NEEDS)

## test-plugins: the tests of the plugins and the documentation alone
test-plugins:
	@packaging/require $(TEST_NEEDS) $(PLUGIN_NEEDS)
	python3 -m unittest discover --start-directory Tests/PluginTests

## soak: random input, the mirror test and the crash test with new seeds, for MINUTES=60 or until one fails
soak:
	@packaging/require $(TEST_NEEDS)
	$(SWIFT) build --build-tests
	@SWIFT=$(SWIFT) packaging/soak .build/debug $(MINUTES)

## check: every rules file that is shipped
check:
	@packaging/require $(RUN_NEEDS)
	$(SWIFT) build
	packaging/check-rules .build/debug/alight

## bench: how fast and how small, beside a small C program; some 10 minutes. BENCH=--full adds a million files
bench:
	@packaging/require $(BUILD_NEEDS) python3
	$(SWIFT) build --configuration release
	$(SWIFT) build --configuration release --package-path Benchmarks
	Benchmarks/bench.py $(BENCH)

## bench-quick: the same, smaller, in some 3 minutes
bench-quick: BENCH += --quick
bench-quick: bench

## example: the program in examples/ that uses the library, and a plugin in Swift that is begun, built and tried
example:
	@packaging/try-example
	@packaging/try-plugin

## docs: the documentation of the library, in .build/docs/site
docs:
	@packaging/make-docs

## lint: the style that the compiler does not check
lint:
	@packaging/require
	$(SWIFT) format lint --strict --recursive Package.swift Sources Tests

## format: put it into that style
format:
	@packaging/require
	$(SWIFT) format --in-place --recursive Package.swift Sources Tests

clean:
	rm -rf .build Benchmarks/.build
