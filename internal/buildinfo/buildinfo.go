// Package buildinfo says which build of the operator this is. The linker sets the variables; a
// build without them takes what Go recorded of the source.
package buildinfo

import "runtime/debug"

// Set by the linker with -X.
var (
	// Version is the release, such as 0.1.0.
	Version = "unknown"
	// Commit is the revision of the source.
	Commit = ""
)

// Revision is the commit of the source, or "unknown".
func Revision() string {
	if Commit != "" {
		return Commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				return setting.Value
			}
		}
	}
	return "unknown"
}
