.PHONY: bench
bench: devcluster ## Measure what sessions cost beside what Kubernetes itself costs (BENCHFLAGS="-sessions 3000"; writes docs/benchmarks)
	go -C test/bench run . -out $(CURDIR)/docs/benchmarks $(BENCHFLAGS)
