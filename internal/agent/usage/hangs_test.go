package usage

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// A metrics API that never answers is given up: what was measured once must not count for
// good.
func TestMeterThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Meter{log: slog.New(slog.DiscardHandler), get: func(ctx context.Context, _ string) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if got := m.Read(ctx, "x"); got != nil || ctx.Err() != nil {
			t.Errorf("got %v, %v; want nothing measured within the hour", got, ctx.Err())
		}
		if m.told == "" {
			t.Error("nobody learns of it")
		}
	})
}
