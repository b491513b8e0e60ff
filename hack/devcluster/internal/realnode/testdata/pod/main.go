// Pod is what the pods of the test do: it has a word for each thing to try.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("say what to do: write FILE, fetch URL, lookup NAME, fill or serve")
	}
	if err := do(os.Args[1], os.Args[2:]...); err != nil {
		log.Fatal(err)
	}
}

func do(what string, args ...string) error {
	switch what {
	case "write": // and read back
		fmt.Printf("uid %d gid %d\n", os.Getuid(), os.Getgid())
		if err := os.WriteFile(args[0], []byte("written by a pod\n"), 0o600); err != nil {
			return err
		}
		content, err := os.ReadFile(args[0])
		fmt.Printf("read back: %s", content)
		return err
	case "lookup":
		addresses, err := (&net.Resolver{PreferGo: true}).LookupHost(context.Background(), args[0])
		fmt.Println(args[0], "is", addresses)
		return err
	case "fetch": // until somebody answers
		client := http.Client{Timeout: time.Second}
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			response, err := client.Get(args[0])
			if err == nil {
				_, err = io.Copy(os.Stdout, response.Body)
				return errors.Join(err, response.Body.Close())
			}
			if time.Now().After(deadline) {
				return err
			}
			log.Print(err)
		}
	case "fill":
		var kept [][]byte
		for {
			block := make([]byte, 1<<20)
			for i := range block {
				block[i] = 1
			}
			kept = append(kept, block)
			fmt.Println(len(kept), "MiB")
			time.Sleep(10 * time.Millisecond) // containerd watches a container only once it has started
		}
	case "serve":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		go func() { log.Fatal(http.ListenAndServe(":8080", http.HandlerFunc(serve))) }()
		<-ctx.Done()
		return nil
	}
	return fmt.Errorf("%q is not known", what)
}

func serve(w http.ResponseWriter, r *http.Request) {
	if _, err := fmt.Fprintln(w, "served to", r.RemoteAddr); err != nil {
		log.Print(err)
	}
}
