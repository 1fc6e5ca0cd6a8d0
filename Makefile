# Every task of the project. CI calls nothing else.
# `make help` lists the targets.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

ROOT := $(CURDIR)
export GOFLAGS := -buildvcs=false -trimpath
export PATH := $(ROOT)/bin:$(PATH)

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

## --- code generation -------------------------------------------------------

bin/buf: deploy/tools/buf/go.mod deploy/tools/buf/go.sum
	GOWORK=off go -C deploy/tools/buf build -o $(ROOT)/bin/buf github.com/bufbuild/buf/cmd/buf && touch $@
bin/.plugins: gen/go.mod gen/go.sum
	GOWORK=off go -C gen build -o $(ROOT)/bin/ tool && touch $@
bin/venv/.stamp: deploy/tools/python/requirements.txt
	python3 -m venv bin/venv && bin/venv/bin/pip install --quiet --requirement $< && touch $@
deploy/tools/es/node_modules/.stamp: deploy/tools/es/package-lock.json
	npm ci --prefix deploy/tools/es --silent && touch $@
deploy/tools/mcp/node_modules/.stamp: deploy/tools/mcp/package-lock.json
	npm ci --prefix deploy/tools/mcp --silent && touch $@
bin/mcp/.stamp: deploy/tools/mcp/requirements.txt
	python3 -m venv bin/mcp && bin/mcp/bin/pip install --quiet --requirement $< && touch $@
# What the example of an attached runtime needs.
bin/langgraph/.stamp: deploy/tools/langgraph/requirements.txt
	python3 -m venv bin/langgraph && bin/langgraph/bin/pip install --quiet --requirement $< && touch $@
# The program of the runtime claude-code, for tests. It is not free software: no release and no image contains it.
bin/claude-code/.stamp: deploy/tools/claude-code/package-lock.json
	npm ci --prefix deploy/tools/claude-code --silent --ignore-scripts
	mkdir -p bin/claude-code && mv -f deploy/tools/claude-code/node_modules/@anthropic-ai/claude-code-linux-x64/claude bin/claude-code/claude
	rm -rf deploy/tools/claude-code/node_modules && touch $@
deploy/tools/models/node_modules/.stamp: deploy/tools/models/package-lock.json
	npm ci --prefix deploy/tools/models --silent && touch $@
deploy/tools/aisdk/node_modules/.stamp: deploy/tools/aisdk/package-lock.json
	npm ci --prefix deploy/tools/aisdk --silent && touch $@
deploy/tools/agui/node_modules/.stamp: deploy/tools/agui/package-lock.json
	npm ci --prefix deploy/tools/agui --silent && touch $@
deploy/tools/a2a/node_modules/.stamp: deploy/tools/a2a/package-lock.json
	npm ci --prefix deploy/tools/a2a --silent && touch $@
bin/a2a/.stamp: deploy/tools/a2a/requirements.txt
	python3 -m venv bin/a2a && bin/a2a/bin/pip install --quiet --requirement $< && touch $@
bin/models/.stamp: deploy/tools/models/requirements.txt
	python3 -m venv bin/models && bin/models/bin/pip install --quiet --requirement $< && touch $@
deploy/tools/openapi/node_modules/.stamp: deploy/tools/openapi/package-lock.json
	npm ci --prefix deploy/tools/openapi --silent && touch $@
bin/openapi-client/.stamp: deploy/tools/openapi/requirements.txt
	python3 -m venv bin/openapi-client && bin/openapi-client/bin/pip install --quiet --requirement $< && touch $@
deploy/tools/packages/node_modules/.stamp: deploy/tools/packages/package-lock.json
	npm ci --prefix deploy/tools/packages --silent && touch $@
# The npm package: checked, bundled with the types of gen/ts, and packed.
bin/packages/npm/.stamp: deploy/tools/packages/node_modules/.stamp $(wildcard deploy/npm/* deploy/npm/src/*) $(shell find gen/ts -name '*.ts')
	rm -rf bin/packages/npm && mkdir -p bin/packages/npm && cp -r deploy/npm/. LICENSE bin/packages/npm/ && cp -r gen/ts bin/packages/npm/gen
	ln -s $(ROOT)/deploy/tools/packages/node_modules bin/packages/npm/node_modules
	cd bin/packages/npm && node_modules/.bin/tsc && node_modules/.bin/rollup --silent --config && \
	  node_modules/.bin/esbuild src/index.ts src/react.ts --bundle --format=esm --target=es2022 --outdir=dist --external:react --external:./index.js --log-level=error && \
	  npm pack --silent && touch $(ROOT)/$@
# The Python package: a wheel, and an environment with nothing but it and a checker of types.
bin/packages/python/.stamp: deploy/tools/packages/requirements.txt $(wildcard deploy/python/client/* deploy/python/client/fairlead/*.py deploy/python/fairlead_runtime/*.py) $(shell find gen/python -name '*.py')
	rm -rf bin/packages/python && python3 -m venv bin/packages/python
	bin/packages/python/bin/pip wheel --quiet --no-deps --wheel-dir bin/packages/python deploy/python/client
	bin/packages/python/bin/pip install --quiet --requirement $< bin/packages/python/*.whl && touch $@
# The example in Java, compiled. Where Maven has no plugin of gRPC, the one that is installed takes its place.
bin/packages/java/.stamp: .protodeps/.stamp deploy/java/pom.xml $(wildcard deploy/java/src/main/java/*) $(shell find proto -name '*.proto')
	rm -rf bin/packages/java
	mvn --batch-mode --quiet --file deploy/java compile exec:help $(addprefix -Dgrpc.plugin=,$(shell command -v grpc_java_plugin)) >bin/java.log || { cat bin/java.log; false; }
	rm bin/java.log && touch $@
.protodeps/.stamp: gen/go.mod gen/go.sum gen/cmd/protodeps/main.go
	rm -rf .protodeps && GOWORK=off go -C gen run ./cmd/protodeps $(ROOT)/.protodeps && touch $@

.PHONY: generate
generate: bin/buf bin/.plugins bin/venv/.stamp deploy/tools/es/node_modules/.stamp .protodeps/.stamp ## Write gen/ anew from proto/
	bin/buf generate
	rm -rf gen/python && mkdir -p gen/python
	bin/venv/bin/python -m grpc_tools.protoc -Iproto -I.protodeps --python_out=gen/python --pyi_out=gen/python --grpc_python_out=gen/python \
	  $$(cd proto && find . -name '*.proto' | sed 's|^\./||' | sort) \
	  $$(cd .protodeps && find . -name '*.proto' | sed 's|^\./||' | grep -E '^(buf|google/(api|rpc))/' | sort)
	GOWORK=off go -C gen run ./cmd/eventnames $(ROOT)
	GOWORK=off go -C gen run ./cmd/roles $(ROOT)
	bin/openapiv3-merge $$(find bin/openapi -name '*.openapi.json' | sort) > bin/openapi/merged.json
	GOWORK=off go -C gen run ./cmd/openapi < bin/openapi/merged.json > bin/openapi/fairlead.json
	mv bin/openapi/fairlead.json gen/openapi/fairlead.json

.PHONY: check-generate
check-generate: generate ## Fail when gen/ is not what proto/ makes
	@git diff --exit-code --stat -- gen docs/events.md docs/roles.md && test -z "$$(git status --porcelain -- gen docs/events.md docs/roles.md)" || \
	  { echo "gen/, docs/events.md or docs/roles.md is not up to date: run 'make generate' and commit the result" >&2; exit 1; }

## --- programs ---------------------------------------------------------------

MODULES := gen clients/go services/internal/kit services/session services/sandbox services/sandbox/kubernetes services/tools services/gateway services/allinone
PREFIX := github.com/fairlead/fairlead
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# Programs are static, so one runs on any Linux of its architecture. Without tables for debuggers they are a third
# smaller; stack traces keep their lines.
LDFLAGS := -s -w -X main.version=$(VERSION)
FAIRLEAD := $(PREFIX)/services/allinone/cmd/fairlead
PROGRAMS := $(FAIRLEAD) $(foreach s,session tools sandbox gateway,$(PREFIX)/services/$(s)/cmd/$(s)) $(PREFIX)/services/sandbox/kubernetes/cmd/sandbox-kubernetes

# The first process of every sandbox, which the programs carry. It is small and static.
INIT := services/sandbox/internal/runner/pool/bin/init
$(INIT): $(wildcard $(addprefix services/sandbox/internal/,initd/*.go initd/*.s initd/wire/*.go initd/stream/*.go terminal/*.go seccomp/*.go)) services/sandbox/go.mod
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o $@ $(PREFIX)/services/sandbox/internal/initd

# The relay of the runtime claude-code, which the programs carry into sandboxes. It is small and static.
RELAY := services/session/internal/claudecode/relaytree/bin/relay
$(RELAY): $(wildcard $(addprefix services/session/internal/claudecode/,relay/*.go launch/*.go)) services/session/go.mod
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o $@ $(PREFIX)/services/session/internal/claudecode/relay

.PHONY: init
init: $(INIT) $(RELAY) ## Build what sandboxes run of ours alone, for tests by hand

.PHONY: build
build: $(INIT) $(RELAY) ## Build bin/fairlead, bin/session, bin/tools, bin/sandbox, bin/sandbox-kubernetes and bin/gateway
	@mkdir -p bin
	CGO_ENABLED=0 go build -ldflags "$(LDFLAGS)" -o bin/ $(PROGRAMS)

.PHONY: fairlead
fairlead: $(INIT) $(RELAY) ## Build bin/fairlead alone: the four services in one program, and the command line
	@mkdir -p bin
	@deploy/build bin/fairlead "$(LDFLAGS)" $(FAIRLEAD)

.PHONY: run
run: fairlead need-bubblewrap ## Serve everything on 127.0.0.1 (REST 8080, gRPC 9090)
	bin/fairlead serve

.PHONY: demo
demo: fairlead need-bubblewrap ## Watch a coder turn repair a small program whose test fails
	bin/fairlead demo

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin .protodeps $(INIT) $(RELAY) deploy/tools/es/node_modules deploy/tools/mcp/node_modules deploy/tools/models/node_modules deploy/tools/aisdk/node_modules deploy/tools/agui/node_modules deploy/tools/a2a/node_modules deploy/tools/openapi/node_modules deploy/tools/packages/node_modules

## --- what the machine needs ---------------------------------------------------

# need PROGRAM PACKAGE: installs a Debian package as root, otherwise says how.
define need
	@command -v $(1) >/dev/null || ls $(3) >/dev/null 2>&1 || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing $(2)" && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(2) >/dev/null; } || \
	  { echo "$(1) is missing. Install it with:  sudo apt-get install -y $(2)" >&2; exit 1; }
endef

.PHONY: claude-code
claude-code: ## Install the Claude Code CLI that tests drive into bin/claude-code
	@$(MAKE) --no-print-directory bin/claude-code/.stamp || echo "the Claude Code CLI cannot be installed here: its tests are skipped" >&2

.PHONY: langgraph
langgraph: ## Install LangGraph, which a test of attached runtimes drives, into bin/langgraph
	@$(MAKE) --no-print-directory bin/langgraph/.stamp || echo "LangGraph cannot be installed here: its test is skipped" >&2

# The official clients and servers that tests run, by the folder of what they need in deploy/tools.
CLIENTS := deploy/tools/mcp/node_modules bin/mcp deploy/tools/models/node_modules bin/models deploy/tools/aisdk/node_modules deploy/tools/agui/node_modules \
  deploy/tools/a2a/node_modules bin/a2a deploy/tools/openapi/node_modules bin/openapi-client
.PHONY: clients
clients: ## Install the official clients that tests run
	@for c in $(CLIENTS); do $(MAKE) --no-print-directory $$c/.stamp || echo "$$c cannot be installed here: its tests are skipped" >&2; done

# The client packages, by the folder in which they are built.
PACKAGES := npm python java
.PHONY: packages
packages: ## Build the client packages for npm and Python, and the example in Java, into bin/packages
	@for p in $(PACKAGES); do $(MAKE) --no-print-directory bin/packages/$$p/.stamp || echo "bin/packages/$$p cannot be built here: its tests are skipped" >&2; done

.PHONY: need-bubblewrap need-postgres
need-bubblewrap:
	$(call need,bwrap,bubblewrap,/nonexistent)
need-postgres:
	$(call need,initdb,postgresql,/usr/lib/postgresql/*/bin/initdb)

## --- tests --------------------------------------------------------------------

# One set of flags for all tests: each further set is a second full compile.
# One package more than there are processors runs at a time, because tests often wait. Those that take longest begin first.
# Vet is left to `make lint`, which runs all of it.
# A program with the race detector sleeps a second before it exits, unless told otherwise.
# Nobody debugs these programs: linking a hundred of them without tables for that is a quarter quicker.
# The race detector leaves out SQLite, which is C by origin, and regular expressions. Both would take most of the time of the
# tests that use them. It cannot leave out what synchronizes with generic types, as encoding/json does: the linker keeps one
# copy of those for all packages.
TESTFLAGS ?= -p $$(($$(nproc)+1)) -vet=off -race $(foreach p,modernc.org regexp unicode,-gcflags=$(p)/...=-race=false) -ldflags=-w -timeout 20m
export GORACE ?= atexit_sleep_ms=0
LONGEST := ./services/sandbox/integration ./services/session/integration ./services/allinone/e2e ./services/session/internal/store/sqlite
WITH_POSTGRES = go run $(PREFIX)/services/internal/kit/cmd/withpostgres

TESTED := $(foreach m,$(MODULES),./$(m)/...)
# suite FLAGS: runs all tests, then prints which were skipped and why. Its exit code is that of the tests.
define suite
	@mkdir -p bin; status=0; $(WITH_POSTGRES) bin/gotestsum --format pkgname-and-test-fails --hide-summary skipped --jsonfile bin/tests.json -- \
	  $(TESTFLAGS) $(1) $(if $(ONLY),$$(go list $(TESTED) | grep -E "$(ONLY)"),$(LONGEST) $(TESTED)) || status=$$?; \
	  go run $(PREFIX)/services/internal/kit/cmd/skipped bin/tests.json; exit $$status
endef

.PHONY: test
test: bin/gotestsum $(INIT) $(RELAY) claude-code need-bubblewrap need-postgres ## Run the tests, with a throw-away Postgres; `make prove` runs those that it leaves out
	$(call suite,-short)

.PHONY: prove
prove: check-darwin bin/gotestsum $(INIT) $(RELAY) claude-code langgraph clients packages need-bubblewrap need-postgres ## Run every test: all drivers, shapes and users, every point at which a replica can die, a thousand turns against one budget; ONLY=PATTERN for some packages
	$(call suite,-count=1)
	$(if $(ONLY),,$(WITH_POSTGRES) go test -count=1 -vet=off -timeout 20m -run 'TestATurnEndsOnceWhereverItsReplicaDies|TestTenSubagentsEnd|TestManyTurns|TestWhatArrivesTakesEffectOnce' ./services/session/integration/)

.PHONY: slowest
slowest: bin/gotestsum ## List the twenty slowest tests of the last run of `make test` or `make prove`
	@bin/gotestsum tool slowest --num 20 --jsonfile bin/tests.json

bin/gotestsum: deploy/tools/gotestsum/go.mod deploy/tools/gotestsum/go.sum
	GOWORK=off go -C deploy/tools/gotestsum build -o $(ROOT)/bin/gotestsum gotest.tools/gotestsum && touch $@

.PHONY: e2e
e2e: $(INIT) need-bubblewrap need-postgres ## Run the end-to-end tests alone
	$(WITH_POSTGRES) go test -count=1 -v -timeout 20m ./services/allinone/e2e/

KILLS ?= 200
SEED ?= 1
DURATION ?= 1h
CHAOS ?=
.PHONY: chaos
chaos: $(INIT) $(RELAY) need-bubblewrap need-postgres ## Kill everything KILLS times while turns run, and check that none is hurt (SEED, DURATION, RACE=1 for programs with the race detector, CHAOS=further flags)
	go run $(PREFIX)/services/allinone/chaos -kills $(KILLS) -seed $(SEED) -duration $(DURATION) $(if $(RACE),-race) $(CHAOS)

.PHONY: chaos-short
chaos-short: $(INIT) $(RELAY) need-bubblewrap need-postgres ## The same in under a minute, as CI runs it
	go test -count=1 -v -run TestChaos ./services/allinone/chaos/

.PHONY: attacks
attacks: $(INIT) $(RELAY) need-bubblewrap ## Attack every driver that this machine can run, as root and as nobody, and print what came of each attack
	@mkdir -p bin && rm -f bin/attacks.md
	go test -count=1 -timeout 20m -run 'TestAttacks|TestAsAPlainUser' ./services/sandbox/integration/ -args -attacks=$(CURDIR)/bin/attacks.md
	@cat bin/attacks.md

ROUNDS ?= 10000
.PHONY: leaks
leaks: $(INIT) $(RELAY) need-bubblewrap ## Make, use and delete workspaces ROUNDS times, and check that nothing is left on the machine
	set -o pipefail; FAIRLEAD_LEAK_ROUNDS=$(ROUNDS) go test -count=1 -v -timeout 2h -run TestNothingLeaks ./services/sandbox/integration/ | grep -v level=INFO

FUZZTIME ?= 20s
.PHONY: fuzz
fuzz: $(INIT) $(RELAY) ## Run every fuzz target for FUZZTIME
	@set -e; for m in $(MODULES); do for f in $$(grep -rlE '^func Fuzz' $$m --include='*_test.go' || true); do \
	  for t in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' $$f); do \
	    echo "== $$f $$t"; go test -run '^$$' -fuzz "^$$t\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./$$(dirname $$f); done; done; done

## --- measurements -------------------------------------------------------------

BENCH = $(PREFIX)/services/allinone/bench $(PREFIX)/services/session/internal/store/storebench $(PREFIX)/services/tools/internal/permission/decisionbench $(addprefix $(PREFIX)/services/sandbox/,internal/snapshot/snapbench integration/sandboxbench)
.PHONY: bench
bench: build need-bubblewrap need-postgres ## Measure speed, each figure beside its baseline; ONLY=first-token for one part
	go build -o bin/ $(BENCH)
	bin/bench --programs bin --only "$(ONLY)" $(BENCHFLAGS)

.PHONY: path
path: $(INIT) $(RELAY) need-bubblewrap ## Count the functions, files and packages of ours that a turn runs
	CGO_ENABLED=0 go build -cover -covermode=atomic -coverpkg=$(PREFIX)/services/... -o bin/path $(PREFIX)/services/allinone/path
	@mkdir -p bin/coverage && GOCOVERDIR=bin/coverage bin/path

## --- checks -------------------------------------------------------------------

bin/golangci-lint: deploy/tools/lint/go.mod deploy/tools/lint/go.sum
	GOWORK=off go -C deploy/tools/lint build -o $(ROOT)/bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint && touch $@

# Two at a time, for most of them wait for one processor. All read what `make build` compiles, which has no C. First those that read proto/ and write gen/, which the others read.
.PHONY: check
check: ## Run every check that CI runs besides the tests
	$(MAKE) --no-print-directory --output-sync=target -j2 check-format check-sizes check-generate lint-proto breaking
	$(MAKE) --no-print-directory --output-sync=target -j2 lint check-modules check-docs check-programs

.PHONY: check-format
check-format:
	@files=$$(gofmt -l $(filter-out gen,$(MODULES)) gen/cmd); [ -z "$$files" ] || { echo "not gofmted (run 'make fix'):"; echo "$$files"; exit 1; }

.PHONY: check-sizes
check-sizes: ## Fail when a type, a file, a package or a module is larger than gen/cmd/sizes/limits.go says
	@go run $(PREFIX)/gen/cmd/sizes .

.PHONY: check-programs
check-programs: build ## Fail when a program is larger than gen/cmd/sizes/limits.go says, or not static
	@go run $(PREFIX)/gen/cmd/sizes . programs

.PHONY: lint
lint: bin/golangci-lint ## Run go vet, staticcheck and the other linters
	@printf '%s\n' services/session $(filter-out services/session,$(MODULES)) | xargs -P 2 -I{} sh -c 'out=$$(cd {} && CGO_ENABLED=0 golangci-lint run --allow-parallel-runners ./... 2>&1); code=$$?; echo "lint {}: $$out"; exit $$code'

.PHONY: lint-proto
lint-proto: bin/buf .protodeps/.stamp ## Lint and check the format of proto/
	buf lint
	buf format --diff --exit-code proto

# Against the last release; before the first one against the parent commit, reported and not failing.
.PHONY: breaking
breaking: bin/buf .protodeps/.stamp ## Look for breaking changes of proto/
	@base=$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true); fail=1; \
	  if [ -z "$$base" ]; then base=$$(git rev-parse -q --verify HEAD~1 || true); fail=0; fi; \
	  if [ -z "$$base" ] || ! git cat-file -e $$base:buf.yaml 2>/dev/null; then echo "breaking: there is nothing to compare with yet"; exit 0; fi; \
	  t=$$(mktemp -d); trap "rm -rf $$t" EXIT; git archive $$base buf.yaml proto | tar -xC $$t && cp -r .protodeps $$t/; \
	  if buf breaking --against $$t; then echo "breaking: nothing against $$base"; \
	  elif [ $$fail = 1 ]; then exit 1; else echo "breaking: reported only, for nothing is released yet"; fi

.PHONY: check-modules
check-modules: ## Fail when a module does not build alone or is not tidy
	@set -e; for m in $(MODULES); do echo "module $$m"; (cd $$m && CGO_ENABLED=0 GOWORK=off go build ./... && GOWORK=off go mod tidy -diff); done

.PHONY: check-darwin
check-darwin: ## Fail when the command line does not build for macOS
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go build -o /dev/null $(PREFIX)/services/allinone/cmd/fairlead

.PHONY: check-docs
check-docs: build ## Fail when docs/configuration.md is not what the programs say, or when a page names a link, route or RPC that does not exist
	@GOWORK=off go -C gen run ./cmd/checkdocs $(ROOT)
	@(bin/fairlead config-table && bin/sandbox-kubernetes config-table && bin/sandbox config-table) | diff -u docs/configuration.md - || { echo "run 'make docs' and commit the result" >&2; exit 1; }

.PHONY: docs
docs: build ## Write docs/configuration.md anew
	(bin/fairlead config-table && bin/sandbox-kubernetes config-table && bin/sandbox config-table) > docs/configuration.md

.PHONY: fix
fix: bin/golangci-lint bin/buf .protodeps/.stamp ## Format everything and mend what linters can mend
	gofmt -w $(filter-out gen,$(MODULES)) gen/cmd
	buf format -w proto
	@for m in $(MODULES); do (cd $$m && golangci-lint run --allow-parallel-runners --fix ./... || true); done

.PHONY: tidy
tidy: ## Tidy every go.mod
	@set -e; for m in $(MODULES); do (cd $$m && GOWORK=off go mod tidy); done
