package theirs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// Who forwards is awaited: what is called for a webhook has ended when the reviews have.
func TestForwarding_IsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake, hold, forwards := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
		failed := errors.New("it cannot go on")
		var ended, returned bool
		go func() {
			err := forwarding(t.Context(), wake, func() { close(forwards); <-hold; ended = true }, func(context.Context) error {
				wake <- struct{}{}
				<-forwards
				return failed
			})
			if !errors.Is(err, failed) || !ended {
				t.Errorf("returned %v while forwarding (ended %t)", err, ended)
			}
			returned = true
		}()
		synctest.Wait()
		if returned {
			t.Error("it returned before what it forwards to did")
		}
		close(hold)
		synctest.Wait()
		if !returned {
			t.Error("it never ends")
		}
	})
}
