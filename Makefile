# The two commands of a fresh machine are 'make demo' and 'make test'; the work is done by scripts/ and by CMake.
.PHONY: help demo setup build test format format-check tidy layers asan tsan fuzz core install clean

help:
	@echo "make demo          install what is needed, build, and let a model write a story"
	@echo "make test          install what is needed, build, and run every test"
	@echo "make build         the release build, in build/release"
	@echo "make asan tsan     build with sanitizers and run the tests"
	@echo "make fuzz          run every fuzz target for 20 seconds"
	@echo "make core          build and test what needs only a compiler, CMake and Ninja"
	@echo "make format tidy   clang-format in place; clang-tidy"
	@echo "make format-check layers   the checks of the sources"
	@echo "make install       into PREFIX (default /usr/local)"
	@echo "make clean         remove build/"

demo:
	@scripts/demo

setup:
	@scripts/setup all

build:
	@scripts/setup
	@scripts/build release

test: build
	@scripts/test build/release

asan tsan:
	@scripts/setup
	@scripts/build $@
	@scripts/test build/$@

fuzz:
	@scripts/setup all
	@scripts/fuzz

core:
	@scripts/setup
	@scripts/core

format:
	@scripts/format

format-check:
	@scripts/format --check

layers:
	@scripts/check-layers

tidy:
	@scripts/tidy

PREFIX ?= /usr/local
install: build
	cmake --install build/release --prefix "$(PREFIX)"

clean:
	rm -rf build
