# Every target stands on one line of help; `make help` prints them.
GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(shell go env GOPATH)/bin/golangci-lint
FUZZTIME ?= 10s
MINUTES ?= 5

.PHONY: help build dist test whole race lint bench soak fuzz

help: ## show the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

build: ## build ./rye-mcp, without cgo as it is published
	CGO_ENABLED=0 go build -trimpath -o rye-mcp ./cmd/rye-mcp

dist: ## what is published: binaries, bundles, server.json and checksums in ./dist
	go run ./cmd/dist

test: ## run the tests, in two minutes on two processors
	go test -short ./...

# The packages that leave something out under -short: those whose tests know longtest.
LONG = go list -f '{{$$p := .ImportPath}}{{range .TestImports}}{{$$p}} {{.}}{{"\n"}}{{end}}{{range .XTestImports}}{{$$p}} {{.}}{{"\n"}}{{end}}' ./... | \
	awk '$$2 ~ "/spaces/longtest$$" {print $$1}' | sort -u

whole: ## what make test leaves out, too: some four minutes more
	go test -timeout 20m $$($(LONG))

race: ## run the tests under the race detector
	go test -race ./...

lint: $(GOLANGCI_LINT) ## gofmt, go vet and the pinned linter
	@test -z "$$(gofmt -l cmd mcp orchestrator runtime tools spaces)" || { gofmt -l cmd mcp orchestrator runtime tools spaces; exit 1; }
	go vet ./... github.com/santhosh-tekuri/jsonschema/v6 # which is mcp/jsonschemav6
	$(GOLANGCI_LINT) run ./...

$(GOLANGCI_LINT):
	go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

bench: ## measure what the README's table shows, one package after another
	@go test -p 1 -timeout 30m -run '^$$' -bench '^BenchmarkRatio' -benchtime 1x ./... | go run ./cmd/benchtable

soak: whole ## MINUTES (5) of mixed load, then all faults and loads at full length
	@RYE_SOAK_MINUTES=$(MINUTES) go test -v -count=1 -timeout 0 -run '^(TestSoak|TestSignals)$$' ./cmd/rye-mcp
	@RYE_SOAK_MINUTES=$(MINUTES) go test -count=1 -timeout 0 -run '^Test(FaultWalk|AttackHostileFolder|Queue|Order|AliveAtOnce|AllAtOnce|LifeCycle)$$' ./cmd/rye-mcp
	@RYE_SOAK_MINUTES=$(MINUTES) go test -v -count=1 -timeout 0 -run '^TestPartition$$' ./cmd/rye-mcp
	@RYE_SOAK_MINUTES=$(MINUTES) go test -count=1 -timeout 0 -run '^Test(CrashWalk|ImportWalk|FullDisk|LedgerOfFamilies|Killed.*)$$' ./cmd/rye-mcp ./orchestrator/... ./runtime/...
	@RYE_SOAK_MINUTES=$(MINUTES) go test -count=1 -timeout 0 -run '^TestAttack(Memory|Huge|Many)' ./spaces/... ./runtime/... ./mcp/...
	@RYE_SOAK_MINUTES=$(MINUTES) go test -v -count=1 -timeout 0 -run '^TestLoadReplay$$' ./cmd/rye-mcp

fuzz: ## run every fuzz target for FUZZTIME (10s)
	@for pkg in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; \
	done
