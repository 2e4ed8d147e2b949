# SPDX-License-Identifier: Apache-2.0

# One set of flags everywhere, so that all targets share Go's build cache.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)

STAGE := scripts/stage.sh
GOLANGCI_LINT := go tool -modfile=go.tools.mod golangci-lint

# The packages that everything rests on; the race detector runs on them only,
# since it needs a C compiler and compiles every dependency anew.
CORE := ./internal/gpu/... ./internal/placement/... ./internal/dra/... ./internal/hardware/...

# The programs that load the NVIDIA driver, which needs cgo.
NODE := ./cmd/gpu-kubelet-plugin

# The seed of the property tests. Zero draws other cases each time; a failure
# prints its seed.
SEED := 1

# How long each fuzz target runs.
FUZZTIME ?= 30s

.DEFAULT_GOAL := help
.NOTPARALLEL:

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build all programs into bin/
	@mkdir -p bin
	@$(STAGE) build go build -o bin/ ./cmd/...
	@$(STAGE) build-node env CGO_ENABLED=1 go build -o bin/ $(NODE)

.PHONY: demo
demo: build ## Show what a simulated GPU node would publish
	@scripts/demo.sh bin/gpu-kubelet-plugin

.PHONY: test
test: test-unit test-race integration ## Run all tests

.PHONY: test-unit
test-unit: ## Run the unit and property tests
	@$(STAGE) test-unit scripts/go-test.sh $(SEED) './cmd/... ./internal/... ./test/bench/...'

.PHONY: test-race
test-race: ## Run the tests of the core packages with the race detector
	@$(STAGE) test-race env CGO_ENABLED=1 scripts/go-test.sh $(SEED) '$(CORE)' -race -short

.PHONY: test-long
test-long: ## Run the property tests longer, with a new seed each time
	@$(STAGE) test-long env RAPID_CHECKS=2000 scripts/go-test.sh 0 './internal/...' -timeout 60m

.PHONY: integration
integration: cluster-binaries ## Run the specs that need a real API server
	@$(STAGE) integration go test -count=1 ./test/integration/...

.PHONY: cluster-binaries
cluster-binaries: ## Build etcd and kube-apiserver for the tests, once per version
	@$(STAGE) cluster-binaries scripts/build-cluster.sh

.PHONY: lint
lint: ## Check formatting, vet and lint
	@$(STAGE) lint $(GOLANGCI_LINT) run ./...
	@$(STAGE) lint-cgo env CGO_ENABLED=1 $(GOLANGCI_LINT) run ./internal/hardware/nvml/...
	@$(STAGE) lint-cluster $(GOLANGCI_LINT) fmt --diff test/cluster

.PHONY: bench
bench: ## Measure how many requests can be served, and at what cost
	@$(STAGE) bench go run ./test/bench

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (30s)
	@$(STAGE) fuzz scripts/fuzz.sh $(FUZZTIME)

.PHONY: generate
generate: ## Generate code and manifests
	@$(STAGE) generate go generate ./...

.PHONY: verify
verify: generate ## Fail if generated files or requirements are out of date
	@$(STAGE) tidy go mod tidy -diff
	@$(STAGE) tidy-cluster go -C test/cluster mod tidy -diff
	@$(STAGE) clean-tree scripts/clean-tree.sh

.PHONY: clean
clean: ## Remove what was built here; the caches of Go and of the cluster stay
	rm -rf bin
