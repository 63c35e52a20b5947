package once

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestLog(t *testing.T) {
	var out bytes.Buffer
	log := New(slog.New(slog.NewTextHandler(&out, nil))).Log
	for range 3 {
		log.Warn("a", "reason", "x")
		log.Warn("a", "reason", "y")
		log.Info("a", "reason", "z")
		log.Warn("b", "reason", "x")
	}
	for _, want := range []string{"level=WARN msg=a reason=x", "level=WARN msg=a reason=y", "level=INFO msg=a reason=z", "level=WARN msg=b reason=x"} {
		if n := strings.Count(out.String(), want); n != 1 {
			t.Errorf("%q is written %d times, want once", want, n)
		}
	}
}
