package serving

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	authenticationapi "k8s.io/api/authentication/v1"
	authorizationapi "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listed is a cache with one CRD.
type listed struct {
	cache.Cache
	crd map[string]any
}

func (c *listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	all, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return errors.New("not a list of anything")
	}
	all.Items = []unstructured.Unstructured{{Object: c.crd}}
	return nil
}

// FuzzServed reads whether the API of the TLS profile is there, from whatever stands in its CRD.
func FuzzServed(f *testing.F) {
	for _, text := range []string{`{}`, `{"status":null}`, `{"status":{"conditions":[]}}`, `{"status":{"conditions":[{"type":"Established","status":"True"}]}}`, `{"status":{"conditions":[null,7,{"type":"Established","status":true},{"type":"Established","status":"False"}]}}`,
		`{"metadata":{"deletionTimestamp":"2026-03-01T12:00:00Z"},"status":{"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True"}]}}`, `{"metadata":[],"status":{"conditions":{"type":"Established"}}}`, `{"metadata":{"deletionTimestamp":7},"status":{"conditions":[{"type":"Established","status":"True"}]}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var object map[string]any
		if json.Unmarshal(text, &object) != nil || object == nil {
			return
		}
		there, err := (&clusterTLS{crds: &listed{crd: object}}).served(t.Context())
		if there && err != nil {
			t.Errorf("%s is there and cannot be read: %v", text, err)
		}
		var crd struct {
			Metadata struct {
				DeletionTimestamp string `json:"deletionTimestamp"`
			} `json:"metadata"`
			Status struct {
				Conditions []struct{ Type, Status any } `json:"conditions"`
			} `json:"status"`
		}
		if json.Unmarshal(text, &crd) != nil {
			return // none that an API server would have
		}
		established := false
		for _, c := range crd.Status.Conditions {
			established = established || c.Type == "Established" && c.Status == "True"
		}
		if there && !established {
			t.Errorf("%s is there", text)
		}
		if at, wrong := time.Parse(time.RFC3339, crd.Metadata.DeletionTimestamp); wrong == nil && !at.IsZero() && there {
			t.Errorf("%s is there, and is being deleted", text)
		}
	})
}

// known is an API server that knows one token, whose owner may do one thing.
type known struct {
	authenticationv1.TokenReviewInterface
	asked []string
}

func (k *known) Create(_ context.Context, review *authenticationapi.TokenReview, _ metav1.CreateOptions) (*authenticationapi.TokenReview, error) {
	k.asked = append(k.asked, review.Spec.Token)
	review.Status.Authenticated = review.Spec.Token == "good" || review.Spec.Token == "nobody"
	review.Status.User.Username = review.Spec.Token
	return review, nil
}

type allowed struct {
	authorizationv1.SubjectAccessReviewInterface
}

func (allowed) Create(_ context.Context, review *authorizationapi.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationapi.SubjectAccessReview, error) {
	what := review.Spec.NonResourceAttributes
	review.Status.Allowed = review.Spec.User == "good" && what.Verb == "get" && what.Path == "/metrics"
	return review, nil
}

// FuzzDoor has callers with any header come again and again, after one who was let in: in come those alone
// whom the API server knows and who may.
func FuzzDoor(f *testing.F) {
	for _, header := range []string{"", "Bearer", "Bearer ", "Bearer good", "bearer  good ", "Basic good", "Bearer nobody", "Bearer good\x00", "Bearer good,Bearer x", " Bearer good", "Bearer\tgood", "good"} {
		f.Add(header, "GET", "/metrics")
	}
	f.Add("Bearer good", "get", "/metrics")
	f.Add("Bearer good", "POST", "/metrics")
	f.Add("Bearer good", "GET", "/metrics/")
	f.Fuzz(func(t *testing.T, header, method, path string) {
		tokens := &known{}
		d := &door{tokens, allowed{}, expiring.NewExpiring()}
		come := func(header, method, path string) int {
			r := &http.Request{Method: method, URL: &url.URL{Path: path}, Header: http.Header{"Authorization": {header}}}
			status, says, err := d.open(r.WithContext(t.Context()))
			if err != nil || (status == http.StatusOK) != (says == "") {
				t.Errorf("%q is answered with %d %q, %v", header, status, says, err)
			}
			if len(header) > 20 && strings.Contains(says, strings.TrimSpace(header[8:])) {
				t.Errorf("the token is told: %q", says)
			}
			return status
		}
		if come("Bearer good", "GET", "/metrics") != http.StatusOK {
			t.Fatal("a caller who may come is not let in")
		}
		fields := strings.SplitN(header, " ", 2)
		bearer := len(fields) == 2 && strings.EqualFold(fields[0], "bearer") && strings.TrimSpace(fields[1]) != ""
		may := bearer && strings.TrimSpace(fields[1]) == "good" && strings.EqualFold(method, "get") && path == "/metrics"
		one, two := come(header, method, path), come(header, method, path)
		if one != two || (one == http.StatusOK) != may || !bearer && one != http.StatusUnauthorized {
			t.Errorf("%s %s with %q is answered with %d and %d", method, path, header, one, two)
		}
		if !bearer && len(tokens.asked) > 1 {
			t.Errorf("the API server is asked about %q", tokens.asked)
		}
	})
}
