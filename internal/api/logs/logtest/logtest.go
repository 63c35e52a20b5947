package logtest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/logs"
)

// Lines are what was logged. The zero value has none.
type Lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String is all of them, as text.
func (l *Lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger writes to them, as the programs' logs are written: with codes, and nothing twice.
func (l *Lines) Logger() *slog.Logger {
	return slog.New(logs.Handler(slog.NewTextHandler(l, nil)))
}

// Wants fails a test where a line of a code is not among them.
func (l *Lines) Wants(t testing.TB, codes ...string) {
	t.Helper()
	Wants(t, l.String(), codes...)
}

// Wants fails a test where a log, as text, has no line of a code.
func Wants(t testing.TB, log string, codes ...string) {
	t.Helper()
	for _, code := range codes {
		message := messageOf(code)
		if message == "" {
			t.Errorf("no line has the code %s", code)
			continue
		}
		if !strings.Contains(log, "msg=\""+message+"\"") && !strings.Contains(log, "msg="+message) {
			t.Errorf("%s %q is not logged; got:\n%s", code, message, log)
		}
	}
}

func messageOf(code string) string {
	for _, e := range logs.Events() {
		if e.Code == code {
			return e.Message
		}
	}
	return ""
}
