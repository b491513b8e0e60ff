.PHONY: chaos
chaos: devcluster ## Break things around two replicas of the operator and judge what came of it (CHAOSFLAGS="-seeds 5 -sessions 300")
	go run ./test/chaos $(CHAOSFLAGS)
