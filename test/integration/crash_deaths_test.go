package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/api/v1alpha1"
)

// blow is what becomes of the operator at one of its writes.
type blow string

// The blows. With the first two the operator is dead for the session; with the others it lives on.
const (
	unharmed     blow = "unharmed"
	killedBefore blow = "killed-before" // the write does not reach the server
	killedAfter  blow = "killed-after"  // the write takes effect, its answer does not arrive
	refusing     blow = "refused"       // the server answers 500
	conflicting  blow = "conflicting"   // the server answers 409
	unanswered   blow = "unanswered"    // the write takes effect, the connection breaks before the answer
)

func (b blow) kills() bool { return b == killedBefore || b == killedAfter }

// victim is a session at whose n-th write the operator is struck, counted from when it is armed.
type victim struct {
	*session
	scenario *scenario
	blow     blow
	n        int

	mu     sync.Mutex
	armed  bool
	dead   bool
	spared bool
	writes []string
	last   time.Time
	// struck is the write that met the blow; lost is what it stored of the status without an answer.
	struck string
	lost   *storedStatus
}

// storedStatus is what of a write of a status metrics count.
type storedStatus struct {
	Phase              v1alpha1.Phase `json:"phase"`
	PodName            string         `json:"podName"`
	ObservedGeneration int64          `json:"observedGeneration"`
}

// deaths lies between an operator and the API server and strikes the operator, for each session at
// another write. A session for which the operator is dead gets nothing more of it: requests about it
// wait until the operator has ended. So one operator dies at many points at once.
type deaths struct {
	mu      sync.Mutex
	victims map[string]*victim
}

// victimName finds the session that a request is about. All its objects are named after it, and what
// is created has its name in the body.
var victimName = regexp.MustCompile(`dies-[a-z]+-\d{3}`)

func (d *deaths) add(v *victim) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.victims[v.project.name+"/"+v.name] = v
}

func (d *deaths) about(request *http.Request, body []byte) *victim {
	text := request.URL.Path + "?" + request.URL.RawQuery
	_, rest, _ := strings.Cut(request.URL.Path, "/namespaces/")
	namespace, _, _ := strings.Cut(rest, "/")
	name := victimName.FindString(text)
	if name == "" {
		name = string(victimName.Find(body))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.victims[namespace+"/"+name]
}

func (d *deaths) around(next http.RoundTripper) http.RoundTripper {
	return transport(func(request *http.Request) (*http.Response, error) {
		var body []byte
		if request.Body != nil {
			var err error
			if body, err = io.ReadAll(request.Body); err != nil {
				return nil, err
			}
			request = request.Clone(request.Context())
			request.Body = io.NopCloser(bytes.NewReader(body))
		}
		v := d.about(request, body)
		if v == nil {
			return next.RoundTrip(request)
		}
		return v.pass(next, request, body)
	})
}

// pass lets a request about the session through, or strikes.
func (v *victim) pass(next http.RoundTripper, request *http.Request, body []byte) (*http.Response, error) {
	struck, dead := v.note(request)
	switch {
	case dead && strings.HasSuffix(request.URL.Path, "/events"):
		// Events are sent beside the passes, by one sender for all sessions.
		return refusal(request, http.StatusInternalServerError, metav1.StatusReasonInternalError), nil
	case dead && !struck, struck && v.blow == killedBefore:
		return v.silence(request)
	case struck && v.blow == refusing:
		return refusal(request, http.StatusInternalServerError, metav1.StatusReasonInternalError), nil
	case struck && v.blow == conflicting:
		return refusal(request, http.StatusConflict, metav1.StatusReasonConflict), nil
	}
	answer, err := next.RoundTrip(request)
	if err != nil {
		return answer, err
	}
	stored := statusIn(request, body)
	if stored != nil && answer.StatusCode < 300 {
		v.stores(stored, struck)
	}
	if !struck {
		return answer, nil
	}
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	if v.blow == killedAfter {
		return v.silence(request)
	}
	return nil, errors.New("the test broke the connection")
}

// silence is what comes back to an operator that is dead: nothing.
func (v *victim) silence(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

// note counts a request and says whether it is the one to strike at, and whether the operator is dead.
func (v *victim) note(request *http.Request) (struck, dead bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if request.Method == http.MethodGet || strings.HasSuffix(request.URL.Path, "/events") || v.dead {
		return false, v.dead
	}
	v.last = time.Now()
	if !v.armed {
		return false, false
	}
	v.writes = append(v.writes, describeWrite(request))
	if len(v.writes) != v.n || v.spared {
		return false, false
	}
	v.struck = describeWrite(request)
	v.dead = v.blow.kills()
	return true, v.dead
}

// describeWrite names a write by its verb and resource.
func describeWrite(request *http.Request) string {
	_, rest, _ := strings.Cut(request.URL.Path, "/namespaces/")
	parts := strings.Split(rest, "/") // namespace, resource, name, subresource
	what := parts[min(1, len(parts)-1)]
	if len(parts) > 3 {
		what += "/" + parts[3]
	}
	return strings.ToLower(request.Method) + " " + what
}

// stores notes a status that was stored.
func (v *victim) stores(status *storedStatus, struck bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if struck {
		v.lost = status
	}
	if v.scenario.armedIn != "" && status.Phase == v.scenario.armedIn {
		v.armed = true
	}
}

func (v *victim) arm() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.armed = true
}

// spare has no operator be struck over the session any more.
func (v *victim) spare() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dead, v.spared, v.armed = false, true, true
}

// at says what has happened to the operator so far.
func (v *victim) at() (writes []string, struck string, dead bool, last time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string{}, v.writes...), v.struck, v.dead, v.last
}

func (v *victim) String() string {
	return fmt.Sprintf("%s, %s at write %d (%s)", v.scenario.name, v.blow, v.n, v.struck)
}

// statusIn is the status that a request writes; nil where it writes none.
func statusIn(request *http.Request, body []byte) *storedStatus {
	if request.Method != http.MethodPatch || path.Base(request.URL.Path) != "status" {
		return nil
	}
	patch := struct {
		Status storedStatus `json:"status"`
	}{}
	if json.Unmarshal(body, &patch) != nil {
		return nil
	}
	return &patch.Status
}
