.PHONY: chaos
chaos: devcluster ## Break things around two replicas of the operator and judge what came of it (CHAOSFLAGS="-seeds 5 -sessions 300")
	go run ./test/chaos $(CHAOSFLAGS)

.PHONY: chaos-short
chaos-short: devcluster ## One small round of it, about three minutes (root)
	E2E=required go test -tags e2e -count=1 -timeout 20m -v $(TESTFLAGS) ./test/chaos
