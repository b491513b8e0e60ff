package serving

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// tlsSettings is what a cluster asks of TLS. The zero value leaves it to the Go version, from TLS
// 1.2 on.
type tlsSettings struct {
	// minVersion is one of the tls.Version constants.
	minVersion uint16
	// ciphers are allowed up to TLS 1.2; those of TLS 1.3 cannot be chosen in Go.
	ciphers []uint16
}

// apply gives a connection's configuration; nil leaves the server's own.
func (s tlsSettings) apply(server *tls.Config) *tls.Config {
	if s.minVersion == 0 {
		return nil
	}
	config := server.Clone()
	config.GetConfigForClient = nil
	config.MinVersion, config.CipherSuites = s.minVersion, s.ciphers
	return config
}

// A profile as OpenShift names and defines it. Ciphers have their OpenSSL names.
type profile struct {
	Ciphers       []string `json:"ciphers"`
	MinTLSVersion string   `json:"minTLSVersion"`
}

const intermediate = "Intermediate"

var versions = map[string]uint16{
	"VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11,
	"VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
}

// profiles are OpenShift's, less the ciphers that Go does not have (those with DHE, and AES-256 in
// CBC mode with SHA-2). Source: config/v1/types_tlssecurityprofile.go of openshift/api.
var profiles = map[string]profile{
	"Old": {append(slices.Clone(forward),
		"ECDHE-ECDSA-AES128-SHA256", "ECDHE-RSA-AES128-SHA256", "ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA",
		"ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA", "AES128-GCM-SHA256", "AES256-GCM-SHA384",
		"AES128-SHA256", "AES128-SHA", "AES256-SHA", "DES-CBC3-SHA"), "VersionTLS10"},
	intermediate: {forward, "VersionTLS12"},
	"Modern":     {nil, "VersionTLS13"},
}

var forward = []string{
	"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
	"ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
}

// settingsOf reads what an APIServer object of config.openshift.io asks for. Where that cannot be
// understood, the error says so and the settings are those of OpenShift's default.
func settingsOf(object map[string]any) (tlsSettings, error) {
	var asked struct {
		Spec struct {
			TLSSecurityProfile struct {
				Type   string   `json:"type"`
				Custom *profile `json:"custom"`
			} `json:"tlsSecurityProfile"`
		} `json:"spec"`
	}
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &asked)
	}
	usual, _ := profiles[intermediate].settings()
	if err != nil {
		return usual, fmt.Errorf("reading spec.tlsSecurityProfile: %w", err)
	}
	p := asked.Spec.TLSSecurityProfile
	if p.Type == "" {
		return usual, nil
	}
	if p.Type == "Custom" && p.Custom != nil {
		settings, known := p.Custom.settings()
		if !known {
			return usual, fmt.Errorf("spec.tlsSecurityProfile.custom.minTLSVersion is %q", p.Custom.MinTLSVersion)
		}
		return settings, nil
	}
	named, known := profiles[p.Type]
	if !known {
		return usual, fmt.Errorf("spec.tlsSecurityProfile.type is %q", p.Type)
	}
	settings, _ := named.settings()
	return settings, nil
}

// settings translates a profile; false if its version is none that is known.
func (p profile) settings() (tlsSettings, bool) {
	version, known := versions[p.MinTLSVersion]
	if !known {
		return tlsSettings{}, false
	}
	s := tlsSettings{minVersion: version}
	for _, name := range p.Ciphers {
		if id, ok := ciphers[name]; ok {
			s.ciphers = append(s.ciphers, id)
		}
	}
	if len(s.ciphers) == 0 {
		// Go would allow all of its own for TLS 1.2; what is allowed here is TLS 1.3 alone.
		s.minVersion = tls.VersionTLS13
	}
	return s, true
}

// ciphers are those of Go up to TLS 1.2, by their OpenSSL and their IANA names.
var ciphers = func() map[string]uint16 {
	known := map[string]uint16{}
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if slices.Contains(suite.SupportedVersions, tls.VersionTLS12) {
			known[suite.Name], known[openSSL.Replace(suite.Name)] = suite.ID, suite.ID
		}
	}
	return known
}()

// openSSL turns the IANA name of a cipher into the one of OpenSSL.
var openSSL = strings.NewReplacer("TLS_RSA_WITH_", "", "TLS_", "", "_WITH_", "-", "AES_", "AES", "3DES_EDE_CBC", "DES-CBC3",
	"_CBC", "", "CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305", "_", "-")

func (s tlsSettings) equal(other tlsSettings) bool {
	return s.minVersion == other.minVersion && slices.Equal(s.ciphers, other.ciphers)
}

// tlsVersion names a minimum for people.
func tlsVersion(minimum uint16) string {
	if minimum == 0 {
		minimum = tls.VersionTLS12
	}
	return tls.VersionName(minimum)
}
