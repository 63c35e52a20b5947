package tools

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// quietInterval is how often a build says that it is alive where lines cannot
// be rewritten (a CI log).
const quietInterval = 15 * time.Second

// tick shows that a build is under way: on a terminal one line whose seconds
// run, elsewhere a line now and then. The returned function ends it.
func tick(w io.Writer, label string) (stop func()) {
	terminal := false
	if file, ok := w.(*os.File); ok {
		terminal = term.IsTerminal(int(file.Fd()))
	}
	interval, start, end := quietInterval, "", "\n"
	if terminal {
		interval, start, end = time.Second, "\r\x1b[K", ""
	}
	began := time.Now()
	show := func() {
		fmt.Fprintf(w, "%sbuilding %s from source: %s%s", start, label, time.Since(began).Round(time.Second), end)
	}
	show()
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				show()
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
		fmt.Fprint(w, start)
	}
}
