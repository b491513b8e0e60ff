# The OLM bundle, the catalog and releases. Included by the Makefile.

PACKAGING := go -C hack/packaging run .
export REPOSITORY := $(CURDIR)
# Pre-releases go to the candidate channel alone.
CHANNELS = $(if $(findstring -,$(VERSION)),candidate,candidate,stable,stable-v$(firstword $(subst ., ,$(VERSION))))
# Name images by digest: DIGESTS=1 asks their registry.
BUNDLE_FLAGS = $(if $(DIGESTS),--use-image-digests)
BUNDLE_IMG ?= $(IMAGE)-bundle:v$(VERSION)
CATALOG_IMG ?= $(IMAGE)-catalog:latest
SCORECARD_IMG ?= $(IMAGE)-scorecard:$(VERSION)

##@ Package for OLM

.PHONY: bundle
bundle: $(KUSTOMIZE) $(OPERATOR_SDK) ## Write the OLM bundle of the version being worked on
	$(OPERATOR_SDK) generate kustomize manifests -q --interactive=false --package agentic-operator
	rm -rf bundle
	$(KUSTOMIZE) build config/manifests | $(OPERATOR_SDK) generate bundle -q --overwrite --extra-service-accounts agentic-operator-metrics-reader $(BUNDLE_FLAGS) \
	  --version $(VERSION) --package agentic-operator --channels $(CHANNELS) --default-channel stable 2>/dev/null
	$(PACKAGING) bundle
	$(PACKAGING) installer >config/olmv1/installer_role.yaml

.PHONY: bundle-validate
bundle-validate: $(OPERATOR_SDK) ## Run operator-sdk's validators and ours on the bundle
	go -C hack/packaging build -o $(BIN)/bundle-validator ./validator
	$(OPERATOR_SDK) bundle validate bundle --select-optional suite=operatorframework --alpha-select-external $(BIN)/bundle-validator

.PHONY: packaging-table
packaging-table: packaging-tools ## Print what the bundle has, and the result of every validator and scorecard test
	@$(PACKAGING) table

.PHONY: catalog
catalog: $(OPM) ## Write the file-based catalog of the released versions
	@mkdir -p catalog/agentic-operator
	$(PACKAGING) catalog >catalog/agentic-operator/index.yaml
	$(OPM) validate catalog/agentic-operator

.PHONY: release
release: ## Make a release: make release VERSION=x.y.z (DIGESTS=1 once its images are published)
	$(PACKAGING) prepare --version $(VERSION)
	$(MAKE) generate bundle bundle-validate VERSION=$(VERSION)
	$(PACKAGING) freeze --version $(VERSION)
	$(MAKE) generate bundle catalog VERSION=$$(cat VERSION)

.PHONY: deprecate
deprecate: ## Tell users to leave a release: make deprecate VERSION=x.y.z MESSAGE="why, and where to go"
	$(PACKAGING) deprecate --version $(VERSION) --message "$(MESSAGE)"
	$(MAKE) catalog

.PHONY: publish
publish: ## Write the layout of the community's catalogs: make publish TO=path/of/a/checkout
	$(PACKAGING) publish --to $(abspath $(TO))

# What its image says of itself in other words than the operator's.
scorecard_labels = --label name=agentic-operator-scorecard --label summary="Scorecard tests of the Agentic Operator" \
	  --label description="Tests that operator-sdk scorecard runs as pods on a cluster with the Agentic Operator: its example, conditions and metrics, and sessions over an upgrade."

.PHONY: scorecard-build
scorecard-build:
	CGO_ENABLED=0 go -C test/scorecard build -trimpath -ldflags "-s -w" -o $(BIN)/scorecard .

.PHONY: scorecard-image
scorecard-image: scorecard-build ## Make the image of the bundle's scorecard tests as bin/scorecard.tar, without a container engine
	@$(read_labels); $(call make_image,scorecard,$(SCORECARD_IMG),--output $(BIN)/scorecard.tar $(scorecard_labels))

.PHONY: bundle-build catalog-build
bundle-build: container-engine ## Build the bundle's image with docker or podman (VERSION=x.y.z for a released one)
	@work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; released=catalog/bundles/$(VERSION); \
	cp -R $$(if [ -d $$released ]; then echo $$released; else echo bundle; fi) $$work/bundle; \
	$(CONTAINER_ENGINE) build -f bundle.Dockerfile -t $(BUNDLE_IMG) $$work

catalog-build: container-engine ## Build the catalog's image with docker or podman
	$(CONTAINER_ENGINE) build -f catalog/catalog.Dockerfile -t $(CATALOG_IMG) catalog
