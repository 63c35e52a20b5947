// Command build makes the servers that the end-to-end tests and the demo run,
// or finds them, and prints where each is:
//
//	go run ./test/tools/build                        # all that make test needs
//	go run ./test/tools/build -older                 # and the older servers of make test-full
//	go run ./test/tools/build kube-apiserver etcd    # only these
//
// Progress goes to standard error, one path a program to standard output.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/fleetbroker/fleetbroker/test/tools"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	older := flag.Bool("older", false, "the servers of older Kubernetes too, which make test-full needs")
	flag.Parse()
	names := flag.Args()
	if len(names) == 0 {
		names = tools.Default()
	}
	if *older {
		names = append(names, tools.Older()...)
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
