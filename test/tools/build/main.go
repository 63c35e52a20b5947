// Command build makes the servers that the end-to-end tests and the demo run,
// or finds them, and prints where each is:
//
//	go run ./test/tools/build                        # all that the tests need
//	go run ./test/tools/build kube-apiserver etcd    # only these
//
// Progress goes to standard error, one path a program to standard output.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/fleetbroker/fleetbroker/test/tools"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	names := os.Args[1:]
	if len(names) == 0 {
		names = tools.Default()
	}
	for _, name := range names {
		path, err := tools.Find(ctx, name, os.Stderr)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			stop()
			os.Exit(1)
		}
		fmt.Println(path)
	}
}
