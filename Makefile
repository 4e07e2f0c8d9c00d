# The most important goals are `make demo` and `make test`.

SWIFT ?= swift
# The directory of `make install`; DESTDIR is prepended to each path.
PREFIX ?= /usr/local
# The Debian packages that each goal requires; packaging/require installs missing ones.
BUILD_NEEDS = libarchive-dev libcurl4-openssl-dev libmagic-dev libmicrohttpd-dev libpcre2-dev libsqlite3-dev \
	libssl-dev libxxhash-dev libyaml-dev
RUN_NEEDS = $(BUILD_NEEDS) libvips-tools python3
# jq is for the bash example of the plugin protocol, python3-jsonschema for validating rules files against the schema,
# D-Bus with Python for a desktop that shows notifications, systemd for checking its units.
TEST_NEEDS = $(RUN_NEEDS) bindfs btrfs-progs chromium-headless-shell curl dbus jq libarchive-tools libnotify-bin openssl python3-dbus python3-gi \
	python3-jsonschema python3-venv python3-yaml systemd xxhash man-db mandoc zsh fish
# For building and testing the package.
DEB_NEEDS = $(BUILD_NEEDS) python3 binutils dpkg-dev lintian
TEST_DEB_NEEDS = $(DEB_NEEDS) debootstrap libvips-tools
# The programs that the shipped plugins call. Their tests need them; Alight itself doesn't.
PLUGIN_NEEDS = python3 libvips-tools poppler-utils ffmpeg tesseract-ocr tesseract-ocr-eng tesseract-ocr-osd ocrmypdf \
	rsync openssh-client clamav

# For the benchmarks: a C compiler, virtual environments, strip(1) and plots.
BENCH_NEEDS = python3 python3-venv gcc libc6-dev binutils gnuplot-nox
BENCH_PROGRAMS = answer arrive copies floor load record reference rows runner spawn

# The duration of `make soak`.
MINUTES ?= 60

# The commit for `alight --version`, set in release builds only; empty in a tarball, which contains it.
COMMIT := $(if $(wildcard .git),$(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null))
RELEASE_ENVIRONMENT = $(if $(COMMIT),ALIGHT_COMMIT=$(COMMIT))
# With Swift's libraries linked statically, the program runs without Swift and starts in half the time.
RELEASE_BUILD = $(SWIFT) build --configuration release --static-swift-stdlib
RELEASE = $(RELEASE_ENVIRONMENT) $(RELEASE_BUILD)

.PHONY: build install uninstall deb test-deb release demo test test-fast plugins-deps test-plugins soak lint format \
	check bench bench-quick example screenshots docs clean

## build: the release binary at .build/release/alight, and the plugins in Swift in their directories
build:
	@packaging/require $(BUILD_NEEDS)
	$(RELEASE) --product alight
	$(RELEASE) --product alight-launch
	$(RELEASE) --product digest-plugin
	packaging/install-plugins .build/release

## install: installs the result of `make build` into PREFIX=/usr/local; requires python3 for the manual pages
install:
	PREFIX=$(PREFIX) packaging/install .build/release

## uninstall: removes it; changed configuration remains
uninstall:
	PREFIX=$(PREFIX) packaging/install --remove

## deb: a Debian package in .build/deb, which does not require Swift
deb:
	@packaging/require $(DEB_NEEDS)
	@$(MAKE) --no-print-directory build
	rm -rf .build/deb
	packaging/make-deb .build/release .build/deb
	lintian --allow-root --fail-on error,warning .build/deb/*.deb

## test-deb: installs the package in a clean Debian, uses, upgrades, removes and purges it; as root, after `make deb`
test-deb:
	@packaging/require $(TEST_DEB_NEEDS)
	@ls .build/deb/*.deb >/dev/null 2>&1 || $(MAKE) --no-print-directory deb
	@rm -rf .build/test-deb/newer
	VERSION=$$(dpkg-deb --field .build/deb/alight_*.deb Version)+newer \
		packaging/make-deb .build/release .build/test-deb/newer
	packaging/test-deb .build/deb/alight_*.deb .build/test-deb/newer/alight_*.deb

## release: all checks, then the package, the source and SHA256SUMS in .build/release-artifacts
release:
	@packaging/release

## demo: runs the rules in rules/ on a letter and two photographs, in a temporary home directory
demo:
	@packaging/require $(RUN_NEEDS)
	@$(RELEASE_ENVIRONMENT) packaging/build-demo $(RELEASE_BUILD)
	@packaging/demo .build/release/alight

## test: all tests: `test-fast`, then `test-plugins`; lists the failures at the end
test:
	@packaging/require $(TEST_NEEDS) $(PLUGIN_NEEDS)
	@$(MAKE) --no-print-directory test-fast
	@$(MAKE) --no-print-directory test-plugins

## test-fast: only the tests in Swift
test-fast:
	@packaging/require $(TEST_NEEDS)
	$(SWIFT) build --build-tests
	packaging/install-plugins .build/debug
	SWIFT=$(SWIFT) packaging/run-tests

## plugins-deps: installs the programs that the shipped plugins call: some 100 MB, one to two minutes
plugins-deps:
	@packaging/require $(PLUGIN_NEEDS)

## test-plugins: only the tests of the plugins, packages, pages in a browser and documentation; after a build
test-plugins:
	@packaging/require $(TEST_NEEDS) $(PLUGIN_NEEDS)
	packaging/install-schemathesis .build/schemathesis
	packaging/get-promtool
	python3 -m unittest discover --start-directory Tests/PluginTests

## soak: random input, the mirror test and the crash test with new seeds, for MINUTES=60 or until one fails; also checks
## that resource usage stays level, and plots it in .build/soak/soak.png
soak:
	@packaging/require $(TEST_NEEDS) gnuplot-nox
	$(SWIFT) build --build-tests
	@SWIFT=$(SWIFT) packaging/soak .build/debug $(MINUTES)

## check: checks all shipped rules files
check:
	@packaging/require $(RUN_NEEDS)
	$(SWIFT) build
	packaging/check-rules .build/debug/alight

## bench: compares speed and memory with a small C program and with other programs; one to two hours. BENCH=--full adds
## a million files
bench: $(BENCH_PROGRAMS:%=.build/bench/%)
	@packaging/require $(BUILD_NEEDS) $(BENCH_NEEDS)
	@packaging/install-peers .build/peers
	$(RELEASE)
	$(SWIFT) build --configuration release --package-path Benchmarks
	Benchmarks/bench.py --json .build/bench.json $(BENCH)

## bench-quick: the same with fewer files and runs, in less than five minutes
bench-quick: BENCH += --quick
bench-quick: bench

.build/bench/%: Benchmarks/C/%.c
	@packaging/require $(BENCH_NEEDS) libsqlite3-dev
	@mkdir -p $(@D)
	$(CC) -O2 -std=gnu17 -Wall -Wextra -Werror -pthread -o $@ $< $(LINKED)

# The action of all systems; static, so that it starts as fast as possible.
.build/bench/record: LINKED = -static
.build/bench/floor .build/bench/rows: LINKED = -lsqlite3

## example: builds and tests the program in examples/ that uses the library, and a new plugin in Swift
example:
	@packaging/try-example
	@packaging/try-plugin

## screenshots: the images of the dashboard in docs/images, in half an hour
screenshots:
	@packaging/require $(TEST_NEEDS)
	$(SWIFT) build --configuration release
	packaging/screenshots .build/release/alight

## docs: the documentation of the library, in .build/docs/site
docs:
	@packaging/make-docs

## lint: checks style, the direction of imports and standard terms
lint:
	@packaging/require python3
	$(SWIFT) format lint --strict --recursive Package.swift Sources Tests
	packaging/check-imports
	packaging/check-prose

## format: formats the Swift sources
format:
	@packaging/require
	$(SWIFT) format --in-place --recursive Package.swift Sources Tests

clean:
	rm -rf .build Benchmarks/.build
