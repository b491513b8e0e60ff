package wiring

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

const (
	// scrapeTokenLife is asked for; the server may give another. A token that leaks is of use for
	// reading metrics, and for no longer than this.
	scrapeTokenLife = 24 * time.Hour

	// aheadOfOurs is by how much the clock of the replica that led before may have been ahead.
	aheadOfOurs = time.Hour

	annotationTokenExpires = "ambient-code.io/token-expires-at"
	annotationTokenAccount = "ambient-code.io/token-account-uid"
	// annotationAuthority is a fingerprint of the certificates that lie beside the token.
	annotationAuthority = "ambient-code.io/serving-ca"
)

// ensureToken has a token for scrapers lie ready, of an account that may read metrics and do nothing
// else, and beside it what verifies the certificate where that lies nowhere else. It tells the world when that token was made, and wakes the operator when it is to be
// renewed. The content of the Secret is never read: that the token in it is the one that was
// written can be seen from who manages the field.
func (r *Reconciler) ensureToken(ctx context.Context, w *watches, world *monitoring.World, wake *earliest) (*monitoring.Condition, error) {
	if !world.WantsToken() {
		return nil, nil
	}
	place := tokenPlace(world)
	have, account := w.get(at(place)), w.get(r.readerAccount())
	if account == nil {
		return tokenProblem("NoAccount", fmt.Sprintf("ServiceAccount %s/%s, in whose name scrapers come, is missing; install the operator's manifests again: make deploy",
			world.Installation.Namespace, monitoring.ReaderAccount)), nil
	}
	if have != nil && !ours(have) {
		return tokenProblem("NameTaken", fmt.Sprintf("Secret %s was not made by the operator and is left alone; rename or remove it: kubectl -n %s delete secret %s",
			place.Name, place.Namespace, place.Name)), nil
	}
	now := r.Clock.Now()
	if have != nil && r.intact(world, have, account) {
		expires := moment(have, annotationTokenExpires)
		if renewal := renewalOf(have, now); now.Before(renewal) {
			world.TokenRefreshedAt = have.Annotations[monitoring.AnnotationRefreshed]
			wake.or(renewal)
			return nil, nil
		}
		if now.Before(expires) {
			world.TokenRefreshedAt = have.Annotations[monitoring.AnnotationRefreshed] // goes on if minting fails
		}
	}
	// Reads of the watch may lag behind our own last write.
	if last := r.minted; have != nil && last.resource != "" && newer(last.resource, have.ResourceVersion) && now.Before(last.renewal) && last.authority == world.Serving.Authority {
		world.TokenRefreshedAt = last.refreshed
		wake.or(last.renewal)
		return nil, nil
	}
	refreshed, err := r.mint(ctx, place, world, account, now, wake)
	if err != nil {
		return tokenProblem("Failed", "no token for scrapers can be made: "+err.Error()), err
	}
	world.TokenRefreshedAt = refreshed
	return nil, nil
}

func tokenPlace(world *monitoring.World) monitoring.Place {
	return monitoring.Place{Kind: monitoring.Secrets, Namespace: world.Installation.Namespace, Name: monitoring.TokenSecret, Part: monitoring.PartScrapeToken}
}

func tokenProblem(reason, message string) *monitoring.Condition {
	return &monitoring.Condition{Part: monitoring.PartScrapeToken, Reason: reason, Message: message, Missing: true}
}

// mintedToken is the last token that was written by this process.
type mintedToken struct {
	resource, refreshed, authority string
	renewal                        time.Time
}

// mint asks for a token and stores it.
func (r *Reconciler) mint(ctx context.Context, place monitoring.Place, world *monitoring.World, account *metav1.PartialObjectMetadata, now time.Time, wake *earliest) (string, error) {
	life := int64(scrapeTokenLife.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &life}}
	subject := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	asked := r.Clock.Now()
	if err := r.client.SubResource("token").Create(ctx, subject, request); err != nil {
		return "", fmt.Errorf("asking for a token of ServiceAccount %s: %w", account.Name, err)
	}
	// By the operator's clock, as it decides by that: the server's may differ.
	granted := scrapeTokenLife
	if seconds := request.Spec.ExpirationSeconds; seconds != nil && *seconds < life {
		granted = time.Duration(*seconds) * time.Second
	}
	refreshed := now.UTC().Format(time.RFC3339Nano)
	annotations := map[string]any{
		monitoring.AnnotationRefreshed: refreshed,
		annotationTokenExpires:         asked.Add(granted).UTC().Format(time.RFC3339Nano),
		annotationTokenAccount:         string(account.UID),
	}
	data := map[string]any{monitoring.TokenKey: base64.StdEncoding.EncodeToString([]byte(request.Status.Token))}
	if world.Serving.Authority != "" {
		annotations[annotationAuthority] = fingerprint(world.Serving.Authority)
		data[monitoring.AuthorityKey] = base64.StdEncoding.EncodeToString([]byte(world.Serving.Authority))
	}
	content := world.Complete(place, map[string]any{
		"metadata": map[string]any{"annotations": annotations},
		"type":     "Opaque",
		"data":     data,
	})
	applied, err := r.place(place).Apply(ctx, place.Name, content, metav1.ApplyOptions{FieldManager: monitoringField, Force: true})
	if err != nil {
		return "", fmt.Errorf("storing the token in Secret %s: %w", place.Name, err)
	}
	renewal := now.Add(granted * 2 / 3)
	r.minted = mintedToken{applied.GetResourceVersion(), refreshed, world.Serving.Authority, renewal}
	wake.or(renewal)
	return refreshed, nil
}

// intact says that a Secret is as it was written: it has its owner and labels, the token is of the
// account that there is now, and nobody else has written it since.
func (r *Reconciler) intact(world *monitoring.World, have, account *metav1.PartialObjectMetadata) bool {
	owned := false
	for _, owner := range have.OwnerReferences {
		owned = owned || string(owner.UID) == world.Installation.UID
	}
	entry := managed(have)
	return owned &&
		have.Labels[monitoring.LabelManagedBy] == monitoring.ManagedBy &&
		have.Annotations[annotationTokenAccount] == string(account.UID) &&
		have.Annotations[annotationAuthority] == fingerprint(world.Serving.Authority) &&
		entry != nil && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+monitoring.TokenKey+`"`) &&
		(world.Serving.Authority == "" || strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+monitoring.AuthorityKey+`"`))
}

// renewalOf is when the token in a Secret is to be renewed, after two thirds of its life. It is due where
// what the Secret says makes no sense, as anybody who may write it can write that as well: a token from the
// future, or one that lives for longer than any that was asked for.
func renewalOf(have *metav1.PartialObjectMetadata, now time.Time) time.Time {
	refreshed, expires := moment(have, monitoring.AnnotationRefreshed), moment(have, annotationTokenExpires)
	if life := expires.Sub(refreshed); !refreshed.After(now.Add(aheadOfOurs)) && life <= 2*scrapeTokenLife {
		return refreshed.Add(life * 2 / 3)
	}
	return time.Time{}
}

// fingerprint tells contents apart; empty for none.
func fingerprint(content string) string {
	if content == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:16])
}

// moment reads a time from an annotation; what cannot be read is long ago.
func moment(object *metav1.PartialObjectMetadata, annotation string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, object.Annotations[annotation])
	if err != nil {
		return time.Time{}
	}
	return t
}
