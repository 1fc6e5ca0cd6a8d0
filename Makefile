# Every task of the project. CI calls nothing else.
# `make help` lists the targets.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

ROOT := $(CURDIR)
export GOFLAGS := -buildvcs=false
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
	bin/openapiv3-merge $$(find bin/openapi -name '*.openapi.json' | sort) > bin/openapi/merged.json
	GOWORK=off go -C gen run ./cmd/openapi < bin/openapi/merged.json > bin/openapi/fairlead.json
	mv bin/openapi/fairlead.json gen/openapi/fairlead.json

.PHONY: check-generate
check-generate: generate ## Fail when gen/ is not what proto/ makes
	@git diff --exit-code --stat -- gen docs/events.md && test -z "$$(git status --porcelain -- gen docs/events.md)" || \
	  { echo "gen/ or docs/events.md is not up to date: run 'make generate' and commit the result" >&2; exit 1; }
