package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/cli/watching"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
)

// watchFlags are those of commands that can go on.
type watchFlags struct {
	watch bool
	every time.Duration
}

func (w *watchFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&w.watch, "watch", "w", false, "go on until interrupted, and fetch the ledger each time: a terminal is redrawn, a pipe gets what has changed")
	cmd.Flags().DurationVar(&w.every, "watch-interval", 5*time.Second, "how often --watch fetches and looks")
}

// clearScreen moves to the top left and empties what is below.
const clearScreen = "\x1b[H\x1b[2J"

// ledgerSeen is the ledger that a command has read, for one that goes on.
type ledgerSeen struct {
	dir, remote, branch string
	commit              tree.Hash
	at                  time.Time
	fetched             bool
}

// seen notes which ledger was read: where it comes from, and how old it is.
func (s *source) seen(branch string) ledgerSeen {
	out := ledgerSeen{dir: s.where, branch: branch}
	if s.repo == nil {
		return out
	}
	if s.cloned() {
		out.remote = s.remote()
	}
	if head, found := s.branchHead(branch); found {
		if c, _, err := s.commitAt(head); err == nil {
			out.commit, out.at = head, c.Committer.When
		}
	}
	return out
}

// String says how old the ledger is; "" where that is not known.
func (l *ledgerSeen) age(now time.Time) string {
	switch {
	case l.dir == "" || l.commit.IsZero() && l.remote == "":
		return ""
	case l.commit.IsZero():
		return fmt.Sprintf("ledger: branch %s has no commit yet", l.branch)
	}
	text := fmt.Sprintf("ledger %s, committed %s ago", l.commit.Short(), report.Age(now.Sub(l.at)))
	if l.remote != "" && !l.fetched {
		text += ", not fetched"
	}
	return text
}

// watching is one command that goes on.
type watched struct {
	watchFlags
	form string
	key  int
	seen *ledgerSeen
	show func(Streams) error

	last    []byte
	notes   watching.Notes
	shownOf tree.Hash // the ledger whose age a pipe was told
}

// run shows once, or again and again until the context ends. What goes wrong at
// first ends it; later it is said, and looked at again.
func (w *watched) run(ctx context.Context, s Streams) error {
	if !w.watch {
		return w.show(s)
	}
	if w.every < 100*time.Millisecond {
		return usagef("--watch-interval %s: want 100ms or more", w.every)
	}
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for first := true; ; first = false {
		err := w.look(ctx, s, first)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			complain(s.Err, "", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look fetches, and draws a new picture or writes what of it has changed. What is said
// next to the picture is part of it on a terminal, which a redraw would wipe else; a pipe
// is told once.
func (w *watched) look(ctx context.Context, s Streams, first bool) error {
	var b, said bytes.Buffer
	into := s
	into.Out, into.Err = &b, &said
	var err error
	if first { // finds out what to fetch, and says what the next says too
		if err = w.show(into); err == nil {
			b.Reset()
			said.Reset()
		}
	}
	if err == nil {
		fetched := w.fetch(ctx, into)
		err = w.show(into)
		w.seen.fetched = fetched
	}
	if err != nil || !s.Terminal {
		_, _ = io.WriteString(s.Err, w.notes.New(said.String()))
	}
	if err != nil {
		return err
	}
	age := w.seen.age(s.Now())
	if s.Terminal {
		if age != "" {
			age += "\n"
		}
		if age += said.String(); age != "" {
			age += "\n"
		}
		_, err := fmt.Fprintf(s.Out, "%s%s%s", clearScreen, age, b.Bytes())
		return err
	}
	if age != "" && (first || w.seen.commit != w.shownOf) {
		fmt.Fprintf(s.Err, "fleetbroker: %s\n", age)
		w.shownOf = w.seen.commit
	}
	changed, gone, err := watching.Changed(w.form, w.last, b.Bytes(), w.key)
	if err != nil {
		return err
	}
	w.last = b.Bytes()
	for _, name := range gone {
		fmt.Fprintf(s.Err, "fleetbroker: no longer listed: %s\n", name)
	}
	_, err = s.Out.Write(changed)
	return err
}

// fetch brings the ledger of a clone up to date, and reports whether that is done.
func (w *watched) fetch(ctx context.Context, s Streams) bool {
	if w.seen.remote == "" {
		return true // read from where it is, each time
	}
	err := watching.Fetch(ctx, w.seen.dir, w.seen.remote, w.seen.branch)
	if err != nil && ctx.Err() == nil {
		complain(s.Err, "", err)
	}
	return err == nil
}
