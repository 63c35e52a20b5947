// Command fleetbroker is the daemon and the users' command line: see
// internal/cli for what it does.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // windows and months need time zones where the image has none

	"github.com/fleetbroker/fleetbroker/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends what computes and asks nobody
	code := cli.Run(ctx, cli.System(), os.Args[1:])
	stop()
	os.Exit(code)
}
