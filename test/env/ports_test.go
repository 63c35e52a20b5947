package env

import (
	"net"
	"testing"
	"time"
)

// A port whose socket somebody still holds for an instant is waited for.
func TestListenWaitsForAPortThatIsBeingFreed(t *testing.T) {
	p, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.release)
	other, err := net.Listen("tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = other.Close() })
	listener, err := p.listen()
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}
