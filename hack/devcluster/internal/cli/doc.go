// Package cli is the command line of devcluster, one file a group of commands.
package cli
