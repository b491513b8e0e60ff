// The first process of every pod on the real node.
module github.com/ambient-code/agentic-operator/hack/devcluster/components/pause

go 1.26.0
