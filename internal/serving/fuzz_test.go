package serving

import (
	"crypto/tls"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// FuzzProfile reads what a cluster asks of TLS: whatever it says, what is served is no weaker than the
// weakest profile that OpenShift has, and what cannot be understood is OpenShift's default.
func FuzzProfile(f *testing.F) {
	for _, s := range []string{``, `null`, `{}`, `{"spec":{"tlsSecurityProfile":{"type":"Old"}}}`, `{"spec":{"tlsSecurityProfile":{"type":"Custom","custom":null}}}`,
		`{"spec":{"tlsSecurityProfile":{"type":"Custom","custom":{"ciphers":["AES128-SHA"],"minTLSVersion":"VersionTLS11"}}}}`, `{"spec":{"tlsSecurityProfile":[]}}`, `{"spec":"x"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			return
		}
		settings, err := settingsOf(object)
		if settings.minVersion < tls.VersionTLS10 {
			t.Errorf("%s allows version %x", text, settings.minVersion)
		}
		if usual, _ := profiles[intermediate].settings(); err != nil && !settings.equal(usual) {
			t.Errorf("%s cannot be understood (%v) and gives %+v", text, err, settings)
		}
		if settings.minVersion < tls.VersionTLS13 && len(settings.ciphers) == 0 {
			t.Errorf("%s leaves the ciphers to Go", text)
		}
		settings.apply(&tls.Config{MinVersion: tls.VersionTLS12})
	})
}

// FuzzCertificate reads a Secret with a certificate: a pair that serves, or a sentence that gives
// nothing away.
func FuzzCertificate(f *testing.F) {
	const name = "metrics.agentic.svc"
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	data, _, err := issue(nil, []string{name}, at)
	if err != nil {
		f.Fatal(err)
	}
	good := [2][]byte{data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]}
	f.Add(good[0], good[1], "", int64(0))
	f.Add(good[0], good[1], string(data[CAKey]), int64(0))
	f.Add(good[0], good[1], "x", int64(0))
	f.Add(good[0], good[0], "x", int64(1<<40))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte("x"), "", int64(-1))
	f.Add([]byte{}, []byte{}, "", int64(0))
	f.Fuzz(func(t *testing.T, certificate, key []byte, ca string, seconds int64) {
		secret := &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key, CAKey: []byte(ca)}}
		found, wrong := judge(secret, name, at.Add(time.Duration(seconds)))
		switch {
		case (found == nil) == (wrong == nil):
			t.Errorf("found %v, wrong %v", found, wrong)
		case found != nil && found.leaf.VerifyHostname(name) != nil:
			t.Error("a certificate for another name is served")
		case found != nil && ca != "" && judgeCA([]byte(ca), &found.certificate, at.Add(time.Duration(seconds))) != nil:
			t.Error("a certificate is served that its authority does not verify")
		case wrong != nil && (wrong.says == "" || wrong.reason == ""):
			t.Error("nothing is said about what is wrong")
		case wrong != nil && len(key) > 16 && strings.Contains(wrong.says, string(key)):
			t.Error("the key is told")
		}
	})
}
