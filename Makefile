# The Agentic Operator. "make" alone lists what there is.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

VERSION := $(shell cat VERSION)
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
BUILDINFO := github.com/ambient-code/agentic-operator/internal/buildinfo
LDFLAGS := -s -w -X $(BUILDINFO).Version=$(VERSION) -X $(BUILDINFO).Commit=$(COMMIT)

# The operator's image: what "make deploy" installs and "make docker-build" builds.
IMAGE ?= quay.io/ambient_code/agentic-operator
IMG ?= $(IMAGE):$(VERSION)

BIN := $(CURDIR)/bin
CONTROLLER_GEN := $(BIN)/controller-gen
KUSTOMIZE := $(BIN)/kustomize
GOLANGCI_LINT := $(BIN)/golangci-lint
OPERATOR_SDK := $(BIN)/operator-sdk
OPM := $(BIN)/opm
DEVCLUSTER := $(BIN)/devcluster
# The kubectl on the PATH, else the one of the local cluster.
KUBECTL ?= $(or $(shell command -v kubectl),$(DEVCLUSTER) kubectl $(if $(KUBECONFIG),--kubeconfig=$(KUBECONFIG)))
CONTAINER_ENGINE ?= $(or $(shell command -v docker),$(shell command -v podman))

PROJECT_ROLES := $(foreach r,view edit admin,-f config/rbac/project_$(r)_role.yaml)

# Every Go module of the repository, and those that have code (the others only pin programs).
MODULES := $(sort $(patsubst %/,%,$(dir $(shell find . -name go.mod -not -path './bin/*'))))
CODE_MODULES := $(foreach m,$(MODULES),$(if $(wildcard $m/*.go $m/*/*.go $m/*/*/*.go),$m))
# Everything "make generate" writes.
GENERATED := api/v1alpha1/zz_generated.deepcopy.go config/crd/bases config/rbac/role.yaml \
	config/manager/kustomization.yaml config/scorecard/kustomization.yaml Dockerfile docs/reference config/prometheus docs/dashboards \
	config/manifests/bases docs/observability.md bundle bundle.Dockerfile catalog/agentic-operator config/olmv1/installer_role.yaml

##@ General

.PHONY: help clean
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## "; print "Usage: make TARGET" } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

clean: ## Remove what was built here (the Go caches and the local clusters' programs stay)
	rm -rf bin operator

##@ Develop

.PHONY: generate
generate: $(CONTROLLER_GEN) $(KUSTOMIZE) ## Write everything that is made from the code: deep copies, CRDs, RBAC, reference docs
	$(CONTROLLER_GEN) object paths=./api/...
	$(CONTROLLER_GEN) crd:allowDangerousTypes=true paths=./api/... output:crd:dir=config/crd/bases
	$(CONTROLLER_GEN) rbac:roleName=agentic-operator paths="{./controllers/...,./internal/serving/...}" output:rbac:dir=config/rbac
	cd config/manager && $(KUSTOMIZE) edit set image agentic-operator=$(IMAGE):$(VERSION)
	cd config/scorecard && $(KUSTOMIZE) edit set image agentic-operator-scorecard=$(IMAGE)-scorecard:$(VERSION)
	sed -i 's/^ARG VERSION=[0-9].*/ARG VERSION=$(VERSION)/' Dockerfile
	go run ./hack/gendocs
	go run ./hack/genmonitoring

.PHONY: format
format: ## Format the Go code
	gofmt -w .

.PHONY: vet
vet: ## Run go vet in every Go module
	@for m in $(CODE_MODULES); do echo "go vet in $$m"; go -C $$m vet -tags e2e ./...; done

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run golangci-lint in every Go module
	@bad=; for m in $(CODE_MODULES); do echo "golangci-lint in $$m"; (cd $$m && $(GOLANGCI_LINT) run --allow-parallel-runners) || bad=1; done; [ -z "$$bad" ]

.PHONY: verify
verify: verify-generated verify-format vet lint verify-modules verify-config verify-dockerfile ## Check everything short of tests: generated files, format, vet, lint, modules, manifests

.PHONY: verify-generated
verify-generated:
	@before=$$(mktemp -d); trap 'rm -rf "$$before"' EXIT; \
	for p in $(GENERATED); do if [ -e $$p ]; then mkdir -p $$before/$$(dirname $$p); cp -R $$p $$before/$$p; fi; done; \
	$(MAKE) generate bundle catalog; stale=; \
	for p in $(GENERATED); do diff -ruN $$before/$$p $$p || stale="$$stale $$p"; done; \
	if [ -n "$$stale" ]; then echo "Generated files were not up to date:$$stale. They are now: look at the change and commit it." >&2; exit 1; fi

.PHONY: verify-format
verify-format:
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "Not formatted; run make format:" $$unformatted >&2; exit 1; fi

.PHONY: verify-modules
verify-modules:
	@for m in $(CODE_MODULES); do echo "go mod tidy -diff in $$m"; go -C $$m mod tidy -diff; done

.PHONY: verify-config
verify-config: $(KUSTOMIZE)
	@for d in default manifests samples scorecard prometheus; do echo "kustomize build config/$$d"; $(KUSTOMIZE) build config/$$d >/dev/null; done

# An engine may be missing, so: what the Dockerfile copies is enough to build, and the image has
# what a catalog of certified images asks for.
.PHONY: verify-dockerfile
verify-dockerfile:
	@for part in name vendor version release summary description maintainer; do \
	  grep -qE "(LABEL|^) +$$part=\"" Dockerfile || { echo "Dockerfile: the label $$part is missing" >&2; exit 1; }; done
	@grep -qE '^USER [1-9][0-9]*(:|$$)' Dockerfile || { echo "Dockerfile: USER must be a number other than 0" >&2; exit 1; }
	@grep -qE '^COPY LICENSE /licenses/' Dockerfile || { echo "Dockerfile: /licenses is missing" >&2; exit 1; }
	@work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	tar cf - $$(awk '/^COPY/ && !/--from/ && !/LICENSE/ { for (i = 2; i < NF; i++) print $$i }' Dockerfile) | tar xf - -C $$work; \
	CGO_ENABLED=0 GOWORK=off go -C $$work build -trimpath -buildvcs=false -o /dev/null . && echo "What the Dockerfile copies builds"

##@ Build

.PHONY: build
build: ## Build the operator into bin/operator
	CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN)/operator .

# Reads the labels of the operator's image, which stand in the Dockerfile, as flags of hack/image.
read_labels = labels=(); while read -r label; do labels+=(--label "$$label"); done \
	  < <(sed -nE 's/^(LABEL|  ) *([a-z]+)="(.*)".*/\2=\3/p' Dockerfile | sed 's/$${VERSION}/$(VERSION)/; s/$${RELEASE}/1/')
# Makes an image of a program in bin, on nothing or on the image BASE: $(call make_image,PROGRAM,NAME OF THE IMAGE,WHERE IT GOES AND MORE).
make_image = go -C hack/image run . --binary '$(BIN)/$1:/usr/local/bin/$(firstword $(subst -, ,$1))' \
	  --license $(CURDIR)/LICENSE --user 65532 "$${labels[@]}" $(if $(BASE),--base $(BASE)) --tag $2 $3

.PHONY: image
image: build ## Make the operator's image as bin/operator.tar, without a container engine
	@$(read_labels); $(call make_image,operator,$(IMG),--output $(BIN)/operator.tar)

# The architectures that the ClusterServiceVersion says are supported.
ARCHITECTURES ?= $(shell sed -nE 's,^ *operatorframework\.io/arch\.([a-z0-9]+): supported$$,\1,p' config/manifests/bases/agentic-operator.clusterserviceversion.yaml)

.PHONY: images-build
images-build:
	@for arch in $(ARCHITECTURES); do echo "Building for $$arch"; \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN)/operator-$$arch .; \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go -C test/scorecard build -trimpath -ldflags "-s -w" -o $(BIN)/scorecard-$$arch .; done

.PHONY: images
images: images-build ## Make both images for all supported architectures as OCI archives in bin (PUSH=1 pushes them as well)
	@$(read_labels); $(call make_image,operator-{arch},$(IMG),--oci-archive $(BIN)/operator.oci.tar $(platform_flags)); \
	$(call make_image,scorecard-{arch},$(SCORECARD_IMG),--oci-archive $(BIN)/scorecard.oci.tar $(platform_flags) $(scorecard_labels))
platform_flags = $(foreach a,$(ARCHITECTURES),--platform linux/$a) $(if $(PUSH),--push)

.PHONY: docker-build
docker-build: container-engine ## Build the operator's image with docker or podman
	$(CONTAINER_ENGINE) build --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) -t $(IMG) .

.PHONY: container-engine
container-engine:
	@if [ -z "$(CONTAINER_ENGINE)" ]; then echo "Neither docker nor podman is installed; install one. make image makes the operator's image without." >&2; exit 1; fi

.PHONY: devcluster
devcluster: $(DEVCLUSTER) ## Build the programs of the local Kubernetes (once; minutes the first time)
	$(DEVCLUSTER) build

##@ Test and try

.PHONY: test
test: devcluster packaging-tools $(BIN)/promtool ## Run unit and integration tests against local control planes with simulated nodes
	@PROMTOOL=$(BIN)/promtool ./hack/test.sh $(TESTFLAGS) -- $(filter-out .,$(CODE_MODULES))

.PHONY: e2e
e2e: devcluster packaging-tools ## Run the end-to-end tests with real containers on a real node (root; Debian's containerd)
	E2E=required go test -tags e2e -p 1 -count=1 -timeout 60m -v $(TESTFLAGS) ./test/e2e ./test/e2e/monitoring

.PHONY: e2e-olm
e2e-olm: devcluster packaging-tools ## Install, upgrade and uninstall with the real OLM on a real node (root; busybox-static as well)
	E2E=required go test -tags e2e -count=1 -timeout 60m -v $(TESTFLAGS) ./test/e2e/olm

.PHONY: demo
demo: ## Watch a session run on a local Kubernetes (DEMO_ONCE=1 ends by itself)
	go run ./hack/demo

##@ Run on the cluster of the current kubeconfig

.PHONY: run
run: ## Run the operator on this machine (ARGS="--legacy-watch" hands flags on)
	go run -ldflags "$(LDFLAGS)" . $(ARGS)

.PHONY: install
install: ## Install the CRDs and the roles of projects, for an operator that runs elsewhere
	$(KUBECTL) apply --server-side --force-conflicts -k config/crd
	$(KUBECTL) apply --server-side --force-conflicts $(PROJECT_ROLES)

.PHONY: uninstall
uninstall: ## Remove the CRDs, and with them all sessions
	$(KUBECTL) delete --ignore-not-found -k config/crd
	$(KUBECTL) delete --ignore-not-found $(PROJECT_ROLES)

.PHONY: deploy
deploy: $(BIN)/deploy.yaml ## Install the CRDs and the operator (IMG=... for another image)
	$(KUBECTL) apply --server-side --force-conflicts -f $<

.PHONY: undeploy
undeploy: $(BIN)/deploy.yaml ## Remove the operator and the CRDs, and with them all sessions
	$(KUBECTL) delete --ignore-not-found --cascade=foreground -n agentic-operator-system deployment agentic-operator && $(KUBECTL) delete --ignore-not-found -f $<

.PHONY: $(BIN)/deploy.yaml
$(BIN)/deploy.yaml: $(KUSTOMIZE)
	@work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; cp -R config $$work; \
	(cd $$work/config/manager && $(KUSTOMIZE) edit set image agentic-operator=$(IMG)); \
	$(KUSTOMIZE) build $$work/config/default >$@

include hack/packaging/packaging.mk
include hack/tools/tools.mk
include test/bench/bench.mk
include test/chaos/chaos.mk
