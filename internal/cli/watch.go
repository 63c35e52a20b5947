package cli

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// watchFlags are those of commands that can go on.
type watchFlags struct {
	watch bool
	every time.Duration
}

func (w *watchFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&w.watch, "watch", "w", false, "go on until interrupted: a terminal is drawn anew, a pipe gets what has changed")
	cmd.Flags().DurationVar(&w.every, "watch-interval", 2*time.Second, "how often --watch looks")
}

// clearScreen moves to the top left and empties what is below.
const clearScreen = "\x1b[H\x1b[2J"

// run shows once, or again and again until the context ends. What goes wrong at
// first ends it; later it is said, and looked at again.
func (w *watchFlags) run(ctx context.Context, s Streams, show func(Streams) error) error {
	if !w.watch {
		return show(s)
	}
	if w.every < 100*time.Millisecond {
		return usagef("--watch-interval %s: want 100ms or more", w.every)
	}
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	var last []byte
	for first := true; ; first = false {
		var b bytes.Buffer
		into := s
		into.Out = &b
		err := show(into)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			complain(s.Err, "", err)
		case s.Terminal:
			if _, err := fmt.Fprintf(s.Out, "%s%s", clearScreen, b.Bytes()); err != nil {
				return err
			}
		case !bytes.Equal(last, b.Bytes()):
			if _, err := s.Out.Write(b.Bytes()); err != nil {
				return err
			}
		}
		if err == nil {
			last = b.Bytes()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
