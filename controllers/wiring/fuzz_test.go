package wiring

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambient-code/agentic-operator/internal/monitoring"
)

// FuzzScrapeToken reads when the token of scrapers is to be renewed: before it expires, and whatever the
// Secret says, no later than a token that was made now.
func FuzzScrapeToken(f *testing.F) {
	f.Add("2026-03-01T11:00:00Z", "2026-03-02T11:00:00Z")
	f.Add("", "")
	f.Add("2026-03-01T11:00:00Z", "9999-12-31T23:59:59Z")
	f.Add("0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z")
	f.Add("9999-12-31T00:00:00Z", "9999-12-31T01:00:00+23:59")
	f.Add("2026-03-01T12:10:00.5Z", "2026-03-01T12:00:00Z")
	f.Add("9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z")
	f.Fuzz(func(t *testing.T, refreshed, expires string) {
		now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
		secret := &metav1.PartialObjectMetadata{}
		secret.Annotations = map[string]string{monitoring.AnnotationRefreshed: refreshed, annotationTokenExpires: expires}
		renewal := renewalOf(secret, now)
		if renewal.After(now.Add(2 * scrapeTokenLife)) {
			t.Errorf("a token of %q that expires at %q is renewed at %s", refreshed, expires, renewal)
		}
		if ends := moment(secret, annotationTokenExpires); now.Before(renewal) && renewal.After(ends) && ends.After(moment(secret, monitoring.AnnotationRefreshed)) {
			t.Errorf("a token of %q that expires at %q is renewed at %s", refreshed, expires, renewal)
		}
		made := &metav1.PartialObjectMetadata{}
		made.Annotations = map[string]string{monitoring.AnnotationRefreshed: now.Format(time.RFC3339Nano), annotationTokenExpires: now.Add(scrapeTokenLife).Format(time.RFC3339Nano)}
		if renewal := renewalOf(made, now); !renewal.Equal(now.Add(16 * time.Hour)) {
			t.Errorf("a token that was made now is renewed at %s", renewal)
		}
	})
}

// object is one as a client decodes it; nil for what is none.
func object(text []byte) *unstructured.Unstructured {
	var content map[string]any
	if json.Unmarshal(text, &content) != nil || content == nil {
		return nil
	}
	content["apiVersion"], content["kind"] = "example.com/v1", "Thing"
	made := &unstructured.Unstructured{}
	whole, err := json.Marshal(content)
	if err != nil || made.UnmarshalJSON(whole) != nil {
		return nil
	}
	return made
}

// FuzzReplacement replaces what an object holds, whoever put what into it: it then holds what is meant and
// nothing else, and what is not the wiring's alone is as it was.
func FuzzReplacement(f *testing.F) {
	f.Add([]byte(`{"data":{"a":"b"}}`), []byte(`{"metadata":{"resourceVersion":"7","labels":{"team":"x"}},"data":{"a":"c"},"binaryData":{"d":"e"},"status":{}}`))
	f.Add([]byte(`{}`), []byte(`{"metadata":{"resourceVersion":""},"a/b":1,"c~1d":[2],"":null}`))
	f.Add([]byte(`{"spec":null,"x":1.5}`), []byte(`{"metadata":{},"spec":{"groups":[1e3,9223372036854775807]},"status":null}`))
	f.Add([]byte(`{"status":{"a":1},"metadata":{"name":"other"}}`), []byte(`{"metadata":{"resourceVersion":"~"}}`))
	f.Fuzz(func(t *testing.T, wanted, stored []byte) {
		meant, now := object(wanted), object(stored)
		if meant == nil || now == nil {
			return
		}
		if now.SetResourceVersion("7"); now.GetResourceVersion() != "7" {
			return // an API server gives every object metadata
		}
		patch, err := replacement(meant, now)
		if err != nil {
			t.Fatal(err)
		}
		steps, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Fatal(err)
		}
		text, err := now.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		after, err := steps.Apply(text)
		if err != nil {
			t.Fatalf("%s of %s: %v", patch, text, err)
		}
		is := &unstructured.Unstructured{}
		if err := is.UnmarshalJSON(after); err != nil {
			t.Fatal(err)
		}
		holds, one := contents(is)
		want, two := contents(meant)
		if holds != want || one != nil || two != nil {
			t.Errorf("%s with %s becomes %s (%v, %v)", text, patch, after, one, two)
		}
		if !reflect.DeepEqual(is.Object["metadata"], now.Object["metadata"]) || !reflect.DeepEqual(is.Object["status"], now.Object["status"]) {
			t.Errorf("%s becomes %s", text, after)
		}
	})
}

// FuzzNewer orders versions: no object is newer than itself, and of two never both.
func FuzzNewer(f *testing.F) {
	for _, v := range []string{"", "0", "1", "10", "9", "9223372036854775808", "x", "-1", "01"} {
		f.Add(v, "9")
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		if newer(one, one) || newer(two, two) {
			t.Errorf("%q or %q is newer than itself", one, two)
		}
		number := func(s string) bool {
			for _, digit := range s {
				if digit < '0' || digit > '9' {
					return false
				}
			}
			return s != "" && s[0] != '0'
		}
		if number(one) && number(two) && one != two && newer(one, two) == newer(two, one) {
			t.Errorf("of %q and %q, newer says %t of both", one, two, newer(one, two))
		}
	})
}

// FuzzSelectors reads what a Prometheus selects: of the object only that is kept, it says the same as the
// whole, and what is no selector selects nothing.
func FuzzSelectors(f *testing.F) {
	for _, text := range []string{`{}`, `{"spec":null}`, `{"spec":[]}`, `{"spec":{"serviceMonitorSelector":{}}}`, `{"spec":{"serviceMonitorSelector":{"matchLabels":{"a":"b"}},"ruleSelector":null,"image":"x"},"status":{"replicas":1}}`,
		`{"spec":{"serviceMonitorSelector":{"matchLabels":{"a":1}}}}`, `{"spec":{"serviceMonitorSelector":"x"}}`, `{"metadata":{"name":"a","namespace":7},"spec":{"serviceMonitorNamespaceSelector":{"matchExpressions":[{"key":"a","operator":"In","values":["b",null]}]}}}`,
		`{"spec":{"ruleSelector":{"matchExpressions":{"key":"a"}},"ruleNamespaceSelector":{"matchLabels":[]}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, original := object(text), object(text)
		if whole == nil {
			return
		}
		stripped, err := stripSelectors(whole)
		if err != nil {
			t.Fatal(err)
		}
		kept, ok := stripped.(*unstructured.Unstructured)
		if !ok || kept.GetName() != original.GetName() || kept.GetNamespace() != original.GetNamespace() || kept.GetResourceVersion() != original.GetResourceVersion() {
			t.Fatalf("%s is kept as %v", text, stripped)
		}
		for field := range kept.Object {
			if field != "spec" && !shared[field] || field == "status" {
				t.Errorf("of %s, %s is kept", text, field)
			}
		}
		for _, field := range []string{"serviceMonitorSelector", "serviceMonitorNamespaceSelector", "ruleSelector", "ruleNamespaceSelector", "image"} {
			one, two := selectorOf(original, field), selectorOf(kept, field)
			if field != "image" && !reflect.DeepEqual(one, two) || field == "image" && two != nil {
				t.Errorf("%s of %s is %v, and %v of what is kept", field, text, one, two)
			}
			content, there, err := unstructured.NestedFieldNoCopy(original.Object, "spec", field)
			if fields, is := content.(map[string]any); one == nil && is && there && err == nil && len(fields) == 0 {
				t.Errorf("%s of %s, which selects all, selects nothing", field, text)
			}
			if _, is := content.(map[string]any); one != nil && !is {
				t.Errorf("%s of %s selects %v", field, text, one)
			}
		}
	})
}
