// Package supervisor is the process that runs one cluster for as long as it lives, and the way in
// which the command line starts and ends it.
//
// Up starts the supervisor as a process of its own session with two pipes. Over one the supervisor
// reports its steps; the other is a lifeline: as long as the cluster is not ready, the supervisor
// gives up and cleans up when the other end is closed, so an `up` that is interrupted or killed
// leaves nothing. Once ready, it lives until SIGTERM (Down), or until the process named by
// --die-with is gone.
package supervisor
