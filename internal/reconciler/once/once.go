// Package once writes log lines of which each is written once in a daemon's life: what
// stays as it is would else be said again by every round. The reconciler calls it.
package once

import (
	"fmt"
	"log/slog"
	"sync"
)

// Said is what was written. Its Log is to be used, so that lines look like those of any log
// (api/logs finds their messages so). It is safe for concurrent use.
type Said struct{ Log *Log }

// Log writes lines that were not written before. Make it with New.
type Log struct {
	next *slog.Logger
	said sync.Map
}

// New writes to a log.
func New(to *slog.Logger) Said { return Said{&Log{next: to}} }

// Warn writes a warning, unless it was written with these keys.
func (l *Log) Warn(message string, keys ...any) {
	if l.first(message, keys) {
		l.next.Warn(message, keys...)
	}
}

// Info writes a line, unless it was written with these keys.
func (l *Log) Info(message string, keys ...any) {
	if l.first(message, keys) {
		l.next.Info(message, keys...)
	}
}

func (l *Log) first(message string, keys []any) bool {
	_, known := l.said.LoadOrStore(message+fmt.Sprint(keys...), true)
	return !known
}
