package integration

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestWorkers: the operator works on as many sessions at a time as it is told to, and on no more.
func TestWorkers(t *testing.T) {
	const most = 2
	operator := alone(t, map[string]string{"MAX_CONCURRENT_RECONCILES": fmt.Sprint(most)}, "--max-concurrent-reconciles=7")
	p := newProject(t, operator)
	held, release := make(chan string, 100), make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	defer free()
	operator.gate.hookInto(t, p.name, func(request *http.Request) *http.Response {
		if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/status") && strings.Contains(request.URL.Path, "/agenticsessions/") {
			held <- request.URL.Path
			<-release
		}
		return nil
	})
	var sessions []*session
	for i := range most + 3 {
		sessions = append(sessions, p.session(fmt.Sprintf("busy-%d", i), "hang"))
	}
	for range most {
		select {
		case <-held:
		case <-time.After(patience):
			t.Fatal("fewer sessions are worked on at a time")
		}
	}
	select {
	case path := <-held:
		t.Errorf("%s is worked on beside %d others", path, most)
	case <-time.After(3 * time.Second):
	}
	free()
	for _, s := range sessions {
		s.reaches(running)
	}
}
