package logs

import (
	"errors"
	"testing"
)

func TestCause(t *testing.T) {
	first := errors.New("read tcp 10.0.0.7:40112->10.0.0.9:6443: i/o timeout")
	again := errors.New("read tcp 10.0.0.7:51987->10.0.0.9:6443: i/o timeout")
	elsewhere := errors.New("read tcp 10.0.0.7:51987->10.0.0.9:6444: i/o timeout")
	if Cause(first) != Cause(again) {
		t.Errorf("two causes of one: %q and %q", Cause(first), Cause(again))
	}
	if Cause(first) == Cause(elsewhere) {
		t.Errorf("one cause of two: %q", Cause(first))
	}
}
