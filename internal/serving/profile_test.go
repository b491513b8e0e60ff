package serving

import (
	"crypto/tls"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestProfiles(t *testing.T) {
	for text, want := range map[string]tlsSettings{
		``:                           {minVersion: tls.VersionTLS12, ciphers: ids(forward)},
		`{type: Intermediate}`:       {minVersion: tls.VersionTLS12, ciphers: ids(forward)},
		`{type: Modern, modern: {}}`: {minVersion: tls.VersionTLS13},
		`{type: Old}`:                {minVersion: tls.VersionTLS10, ciphers: ids(profiles["Old"].Ciphers)},
		`{type: Custom, custom: {ciphers: [AES128-SHA, DES-CBC3-SHA, TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, NONE], minTLSVersion: VersionTLS11}}`: {
			minVersion: tls.VersionTLS11,
			ciphers:    []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA},
		},
		// Nothing of it is in Go below TLS 1.3, where Go must not choose for itself.
		`{type: Custom, custom: {ciphers: [TLS_AES_128_GCM_SHA256, DHE-RSA-AES128-GCM-SHA256], minTLSVersion: VersionTLS12}}`: {minVersion: tls.VersionTLS13},
	} {
		if got, err := read(t, text); err != nil || !got.equal(want) {
			t.Errorf("%s gives %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		`{type: Future}`: `"Future"`,
		`{type: Custom}`: `"Custom"`,
		`{type: Custom, custom: {ciphers: [], minTLSVersion: VersionTLS14}}`: `"VersionTLS14"`,
		`{type: 1}`: "tlsSecurityProfile",
	} {
		usual := tlsSettings{minVersion: tls.VersionTLS12, ciphers: ids(forward)}
		if got, err := read(t, text); err == nil || !strings.Contains(err.Error(), says) || !got.equal(usual) {
			t.Errorf("%s gives %+v, %v; want the default and an error with %s", text, got, err, says)
		}
	}
}

func TestEveryCipherOfTheProfilesIsKnown(t *testing.T) {
	for name, p := range profiles {
		for _, cipher := range p.Ciphers {
			if ciphers[cipher] == 0 {
				t.Errorf("%s: %s is no cipher of Go", name, cipher)
			}
		}
	}
	if ciphers["ECDHE-ECDSA-CHACHA20-POLY1305"] != tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 || ciphers["AES128-GCM-SHA256"] != tls.TLS_RSA_WITH_AES_128_GCM_SHA256 {
		t.Error("names are translated wrongly")
	}
}

func read(t *testing.T, profile string) (tlsSettings, error) {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(`{kind: APIServer, spec: {tlsSecurityProfile: `+profile+`}}`), &object); err != nil {
		t.Fatal(err)
	}
	return settingsOf(object)
}

func ids(names []string) []uint16 {
	var all []uint16
	for _, name := range names {
		all = append(all, ciphers[name])
	}
	return all
}
