package serving

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationapi "k8s.io/api/authentication/v1"
	authorizationapi "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// admittedFor is how long a caller who was let in is not asked about again. A right that was
	// taken away ends with it.
	admittedFor = time.Minute
	// longestReview is how long the API server may take for an answer.
	longestReview = 10 * time.Second
)

// door lets callers in whose token the API server knows and who may do what they ask for.
type door struct {
	tokens   authenticationv1.TokenReviewInterface
	rights   authorizationv1.SubjectAccessReviewInterface
	admitted *cache.Expiring
}

// request is what a caller asks for, and with which token; the token itself is not kept.
type request struct {
	token      [sha256.Size]byte
	verb, path string
}

// admitting is the metrics server's filter.
func admitting(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	authentication, err := authenticationv1.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a client that asks who reads metrics: %w", err)
	}
	authorization, err := authorizationv1.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a client that asks who may read metrics: %w", err)
	}
	d := &door{authentication.TokenReviews(), authorization.SubjectAccessReviews(), cache.NewExpiring()}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status, says, err := d.open(r)
			if err != nil {
				log.Error(err, "The API server did not say whether a caller may read metrics; the operator needs the right to create tokenreviews and subjectaccessreviews")
			}
			if status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			if status != http.StatusOK {
				http.Error(w, says, status)
				return
			}
			next.ServeHTTP(w, r)
		}), nil
	}, nil
}

// open says with which status to answer a caller, and why where it is not OK.
func (d *door) open(r *http.Request) (status int, says string, err error) {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !found || !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, "Metrics are for callers with a token: send it in a header Authorization: Bearer.", nil
	}
	asked := request{sha256.Sum256([]byte(token)), strings.ToLower(r.Method), r.URL.Path}
	if _, known := d.admitted.Get(asked); known {
		return http.StatusOK, "", nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), longestReview)
	defer cancel()
	who, err := d.tokens.Create(ctx, &authenticationapi.TokenReview{Spec: authenticationapi.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusInternalServerError, "The token could not be reviewed; the operator's log says why.", fmt.Errorf("reviewing a token: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, "The token is none of this cluster, or has expired: send a new one.", nil
	}
	may, err := d.rights.Create(ctx, review(who.Status.User, asked), metav1.CreateOptions{})
	if err != nil {
		return http.StatusInternalServerError, "The right could not be reviewed; the operator's log says why.", fmt.Errorf("reviewing the right of %s: %w", who.Status.User.Username, err)
	}
	if !may.Status.Allowed || may.Status.Denied {
		return http.StatusForbidden, fmt.Sprintf("%s may not %s %s: bind it to a ClusterRole with that verb and nonResourceURL.", who.Status.User.Username, asked.verb, asked.path), nil
	}
	d.admitted.Set(asked, nil, admittedFor)
	return http.StatusOK, "", nil
}

func review(user authenticationapi.UserInfo, asked request) *authorizationapi.SubjectAccessReview {
	extra := map[string]authorizationapi.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationapi.ExtraValue(values)
	}
	return &authorizationapi.SubjectAccessReview{Spec: authorizationapi.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationapi.NonResourceAttributes{Verb: asked.verb, Path: asked.path},
	}}
}
