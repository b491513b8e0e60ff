# The programs that other targets need. Included by the Makefile.

##@ Tools

.PHONY: tools
tools: $(CONTROLLER_GEN) $(KUSTOMIZE) $(GOLANGCI_LINT) $(BIN)/promtool ## Build the tools of make generate and make verify, and the one that tests the alerting rules

.PHONY: packaging-tools
packaging-tools: $(OPERATOR_SDK) $(OPM) $(KUSTOMIZE) ## Build operator-sdk and opm (heavy; only packaging needs them) and kustomize

# Each tool is pinned in a module of its own and built again only when that module changes.
LDFLAGS_golangci-lint = -X main.version=$(call version_of,golangci-lint,golangci-lint/v2)
SDK_VERSION = -X github.com/operator-framework/operator-sdk/internal/version
LDFLAGS_operator-sdk = $(foreach v,Version GitVersion ImageVersion,$(SDK_VERSION).$v=$(call version_of,operator-sdk,operator-sdk))
# Without cgo and its libraries (gpgme, btrfs, devicemapper).
TAGS_operator-sdk = containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper
# Rules need no discovery of targets in clouds, nor its libraries.
TAGS_promtool = remove_all_sd
LDFLAGS_promtool = -X github.com/prometheus/common/version.Version=$(call version_of,promtool,prometheus)
LDFLAGS_opm = -X github.com/operator-framework/operator-registry/cmd/opm/version.opmVersion=$(call version_of,opm,operator-registry)
TAGS_opm = json1,containers_image_docker_daemon_stub,$(TAGS_operator-sdk)
version_of = $(shell awk '$$1 ~ "/$2$$" && $$2 ~ /^v/ { print $$2 }' hack/tools/$1/go.mod)

$(BIN)/%: hack/tools/%/go.mod hack/tools/%/go.sum
	@echo "Building $* (once)"; mkdir -p $(BIN)
	@cd hack/tools/$* && CGO_ENABLED=0 GOWORK=off go build -trimpath -tags "$(TAGS_$*)" -ldflags "-s -w $(LDFLAGS_$*)" -o $(BIN)/ tool && touch $@

.PHONY: $(DEVCLUSTER)
$(DEVCLUSTER):
	@mkdir -p $(BIN); go -C hack/devcluster build -o $@ .
