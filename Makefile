# Every target starts one Go program or one Go command; what they do is in their own --help.
# Built as the product is (no cgo, no paths), so that both share what the Go build cache holds.
QUALIFY = CGO_ENABLED=0 go run -trimpath ./qualification/cmd/ptah-qualify
CONTROLLER_GEN = go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0

.PHONY: help quickstart quickstart-down lab lab-down test test-unit lint generate verify

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

quickstart: ## from an empty machine to a signed record and a report
	$(QUALIFY) quickstart

quickstart-down: ## remove everything that quickstart or lab left running
	$(QUALIFY) quickstart --down

lab: ## the same lab with the operator installed, left up to try things by hand
	$(QUALIFY) quickstart --until install

lab-down: quickstart-down

test: ## unit, API server and container tests, with the race detector; no cluster
	$(QUALIFY) test

test-unit: ## only what needs neither binaries nor Docker
	go test -race ./...

lint: ## formatting, vet and golangci-lint where it is installed
	test -z "$$(gofmt -l $$(git ls-files '*.go'))"
	CGO_ENABLED=0 GOFLAGS=-trimpath go vet ./...
	if command -v golangci-lint >/dev/null; then golangci-lint run; fi

generate: ## deepcopy code and CRDs from operator/api, the page of reasons, tables of the profiles, workflow files
	$(CONTROLLER_GEN) object paths=./operator/api/... crd:maxDescLen=0 paths=./operator/api/... \
		output:crd:artifacts:config=chart/ptah-operator/crds
	CGO_ENABLED=0 go run -trimpath ./operator/reference support/docs/reasons.md
	$(QUALIFY) profile table --write $(basename $(notdir $(wildcard profiles/*.yaml)))
	$(QUALIFY) catalogue workflows --write

verify: generate ## fail when generated files are not what is committed
	git diff --exit-code -- operator/api chart/ptah-operator/crds
	test -z "$$(git status --porcelain -- operator/api chart/ptah-operator/crds)"
	test -z "$$(git status --porcelain -- support/profile-*.md support/docs/reasons.md)"
	test -z "$$(git status --porcelain -- .github/workflows)"
