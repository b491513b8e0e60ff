// Package proc keeps the programs of a cluster running: it starts them, gives each a log file,
// restarts one that crashes, and stops them in the opposite order of their start.
//
// A Group belongs to one supervisor. Every process in it is started with a parent death signal, so
// when the supervisor is gone, however it went, the kernel ends the children as well. That signal
// is tied to the thread that started the child and not to its process, so all starts go through
// one thread that lives as long as the program (see spawn.go).
//
//	group := proc.NewGroup(logDir)
//	etcd, err := group.Start(proc.Spec{Name: "etcd", Path: "/…/etcd", Args: []string{"--name=x"}})
//	err = etcd.WaitReady(ctx, func(ctx context.Context) error { return probe(ctx) })
//	…
//	err = group.Stop(ctx)
//
// Short commands that end by themselves (ip, ctr, iptables) are run with Run.
package proc
