# Thin: the build is CMake's, the tests are tests/run's.
DATA ?= ./fgw-data
DESTDIR ?=
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

.DEFAULT_GOAL := build
.PHONY: run build test test-quick test-full soak check bench cluster install fmt clean

run: build
	build/release/fgw serve --data "$(DATA)"

build:
	@tools/bootstrap build
	cmake --preset release --log-level=WARNING
	cmake --build build/release --target fgw -j $(JOBS)

test:
	@tools/bootstrap test
	tests/run test

test-quick:
	@tools/bootstrap test
	tests/run quick

test-full:
	@tools/bootstrap full
	tests/run full

soak:
	@tools/bootstrap test
	tests/run soak

check:
	@tools/bootstrap test
	tools/check

bench:
	bench/run

cluster: build
	tools/cluster

install: build
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" deploy/install

fmt:
	tools/check_format --fix

clean:
	rm -rf build
