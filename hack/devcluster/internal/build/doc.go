// Package build makes the programs of a cluster from pinned Go modules.
//
// Each folder below components/ is a Go module of its own whose go.mod pins one family of programs.
// The built files lie in the user's cache folder below a name derived from everything that
// determines them (go.mod, go.sum, flags, the Go version), so a change of a version builds anew and
// nothing is ever half replaced: a file appears under its name only when it is whole, and a lock
// keeps two runs from building the same thing at once.
package build
