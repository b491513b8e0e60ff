# The operator's image. Build it with: docker build -t agentic-operator . (or podman build).

FROM --platform=${BUILDPLATFORM:-linux/amd64} docker.io/library/golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION
ARG COMMIT=unknown
ENV CGO_ENABLED=0 GOTOOLCHAIN=local
WORKDIR /src

# The modules first: this layer is built again only when they change.
COPY go.mod go.sum ./
RUN go mod download

COPY VERSION main.go ./
COPY api/ api/
COPY controllers/ controllers/
COPY internal/ internal/
RUN GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false \
      -ldflags "-s -w \
        -X github.com/ambient-code/agentic-operator/internal/buildinfo.Version=${VERSION:-$(cat VERSION)} \
        -X github.com/ambient-code/agentic-operator/internal/buildinfo.Commit=${COMMIT}" \
      -o /out/operator .

FROM registry.access.redhat.com/ubi9/ubi-minimal:9.6
ARG VERSION=0.4.0
ARG RELEASE=1
LABEL name="agentic-operator" \
      vendor="Ambient Code" \
      version="${VERSION}" \
      release="${RELEASE}" \
      summary="Runs AI agent sessions as Kubernetes Jobs" \
      description="The Agentic Operator runs the agent sessions of the Ambient Code Platform: each AgenticSession becomes a Job with its own workspace, identity, token and network address, and its progress is reported in the status." \
      maintainer="Ambient Code <https://github.com/ambient-code>"
COPY LICENSE /licenses/LICENSE
COPY --from=build /out/operator /usr/local/bin/operator
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
EXPOSE 8443 8081
ENTRYPOINT ["/usr/local/bin/operator"]
