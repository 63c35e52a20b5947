// Command miniredis is the Redis of Argo CD's programs in the tests: an
// in-memory one that dies with its process. It prints the address it listens
// at as its first line.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func main() {
	address := flag.String("address", "127.0.0.1:0", "`host:port` to listen at; port 0 takes a free one")
	flag.Parse()
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr(*address); err != nil {
		fmt.Fprintf(os.Stderr, "miniredis: listen at %s: %v\n", *address, err)
		os.Exit(1)
	}
	defer server.Close()
	fmt.Println(server.Addr())
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, os.Interrupt, syscall.SIGTERM)
	// miniredis expires nothing by itself: its clock is moved.
	clock := time.NewTicker(time.Second)
	defer clock.Stop()
	for {
		select {
		case <-ends:
			return
		case <-clock.C:
			server.FastForward(time.Second)
		}
	}
}
