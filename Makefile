# fleetbroker: `make demo` shows it, `make test` proves it, `make help` lists the rest.

GO ?= go
# As they are installed, and linked in half the time: with cgo, the package plugin
# that kustomize imports has the C linker link each program and each test.
export CGO_ENABLED ?= 0
# As releases are built, so that what was compiled for one is there for the other, and
# for each checkout.
export GOFLAGS ?= -trimpath
# How many packages are tested at once: several run servers of their own, two tests at a
# time. One package at once takes 1.7 of two processors; three made servers so slow that
# tests waited in vain.
PACKAGES_AT_ONCE ?= 2
# More flags for go test, for example TESTFLAGS='-run TestOversell -v'.
TESTFLAGS ?=

.DEFAULT_GOAL := build
.PHONY: build images release demo programs test test-full test-short fuzz vuln vet lint bench generate fmt tools tools-older clean help

build: ## the two programs, into bin/
	$(GO) build -o bin/ ./cmd/fleetbroker ./cmd/fleet-agent

# Where `make images` puts them (default: REGISTRY of RELEASES=URL#REGISTRY), the version that they get, a base with its digest in
# place of ours, and a key to sign with. A version may be a tag that anybody has pushed: it
# reaches the commands by the environment, where a shell takes it for text.
REGISTRY ?=
VERSION ?=
BASE ?=
KEY ?=
# Who builds, as a URL, for the provenance.
BUILDER ?=
export REGISTRY VERSION BASE RELEASES BUILDER

images: ## both programs as images in REGISTRY, tagged VERSION (BASE=name@sha256:..., KEY=file): no container engine
	cd test/tools/images && GOWORK=off $(GO) run . push -registry "$$REGISTRY" -version "$$VERSION" -releases "$$RELEASES" -base "$$BASE" -key "$(abspath $(KEY))" -builder "$$BUILDER"

# Where releases are (https, with #REGISTRY of the images where that is not ghcr.io/OWNER of
# github.com), where `make release` writes (default: dist/VERSION, empty
# before), and for which platforms.
RELEASES ?=
TO ?=
PLATFORMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64

release: ## all of a release in one directory (VERSION=v0.1.0 RELEASES=URL): archives, SBOMs, images, chart, krew manifest, notes, checksums, provenance
	$(GO) run ./test/tools/release -version "$$VERSION" -releases "$$RELEASES" -to "$(TO)" -platforms "$(PLATFORMS)" -key "$(abspath $(KEY))" -builder "$$BUILDER"

# It builds the servers that it runs and no others, unless KUBEBUILDER_ASSETS or the cache has them.
demo: build ## the whole thing on this machine: three clusters with Liqo, git, agents, daemon
	$(GO) build -o bin/demo ./test/demo
	bin/demo

# What the tests call and do not build, as command=package of Debian.
PROGRAMS = git=git ssh=openssh-client cbc=coinor-cbc cc=gcc $(or $(CHROMIUM),chromium)=chromium

programs: ## stop where a program that the tests call is missing, with the command that installs it
	@missing=; for p in $(PROGRAMS); do command -v "$${p%%=*}" >/dev/null || missing="$$missing $${p#*=}"; done; \
	[ -z "$$missing" ] || { echo "missing programs; install them: apt-get install$$missing (.ci/run does)" >&2; exit 1; }

# lint holds go vet's rules too, for tests as well, so neither vet nor go test looks once more.
test: programs lint tools ## everything CI runs
	$(GO) test -tags e2e -vet off -count 1 -p $(PACKAGES_AT_ONCE) -timeout 45m $(TESTFLAGS) ./...

# What make test does not compile has the tag full beside e2e.
test-full: tools-older ## the batches, traces, faults and stories too that take minutes; copy what it prints into test/bench/RESULTS.md
	$(GO) test -tags e2e -count 1 -timeout 60m -v $(TESTFLAGS) ./test/e2e/policies -run TestForms -full
	$(GO) test -tags e2e -count 1 -timeout 60m -v $(TESTFLAGS) ./test/e2e/install -run TestInstallCluster_Webhook -full
	$(GO) test -tags e2e -count 1 -timeout 60m -v $(TESTFLAGS) ./test/e2e/guide -full
	$(GO) test -count 1 -timeout 90m -v $(TESTFLAGS) ./test/quality ./internal/simulate -full
	$(GO) test -count 1 -timeout 90m $(TESTFLAGS) ./test/sim -run 'TestSim$$' -seeds 10000 -within 60m -least 2000
	$(GO) test -count 1 -timeout 60m -v $(TESTFLAGS) ./test/sim/day -contracts 2000 -hours 24
	$(GO) test -tags e2e,full -count 1 -p 2 -timeout 120m -v $(TESTFLAGS) ./test/e2e/enforce ./test/e2e/spine ./test/e2e/replicas ./test/e2e/install ./test/e2e/flux ./test/e2e/argo
	$(GO) test -tags e2e,full -count 1 -timeout 120m -v $(TESTFLAGS) ./test/e2e/liqo -full
	$(GO) test -tags e2e -count 1 -timeout 60m -v $(TESTFLAGS) ./test/e2e/soak -full
	$(MAKE) fuzz FUZZTIME=20s

test-short: ## the tests that need no servers: minutes
	$(GO) test -short $(TESTFLAGS) ./...

# How long each target is fuzzed, which package (empty is every one), and by how
# many processes.
FUZZTIME ?= 10m
FUZZPKG ?=
FUZZPARALLEL ?= 2

fuzz: ## every fuzz target, FUZZTIME each (the seeds alone run with the tests)
	@grep -rl --include=*_test.go '^func Fuzz' internal/$(FUZZPKG) | sort | while read -r file; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\).*/\1/p' "$$file"); do \
			echo "$$target in $${file%/*}"; \
			$(GO) test "./$${file%/*}" -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -parallel $(FUZZPARALLEL) || exit 1; \
		done; \
	done

vet: ## go vet, end-to-end tests included
	$(GO) vet -tags e2e,full ./...

lint: ## golangci-lint with .golangci.yml, built from test/tools/golangci
	"$$($(GO) run ./test/tools/build golangci-lint)" run ./...

vuln: ## known vulnerabilities: by https://vuln.go.dev, or by the part of it in test/vulns where that cannot be reached
	$(GO) run ./test/vulns/check

bench: tools ## benchmarks; copy what they print into test/bench/RESULTS.md
	$(GO) test -tags e2e -run '^$$' -bench . -benchtime 1x -timeout 90m $(TESTFLAGS) ./test/bench/...
	$(GO) test -tags e2e -run '^$$' -bench . -benchtime 1x -timeout 30m $(TESTFLAGS) ./test/e2e/liqo

generate: ## schemas, CRDs and reference pages from the Go types
	$(GO) generate ./...

fmt: ## gofmt
	gofmt -s -w cmd internal test

tools: ## the servers for tests and demo, built once into the user's cache
	$(GO) run ./test/tools/build

tools-older: ## those too that make test-full needs
	$(GO) run ./test/tools/build -older

clean: ## remove bin/; the cache of servers stays
	rm -rf bin

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
