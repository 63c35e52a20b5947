package daemon

import (
	"context"
	"errors"
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// Registry says which replicas live; *store.Shared is one.
type Registry interface {
	// Live are the replicas that answer, this one included; cut: it is not known of others.
	Live() (replicas []string, cut bool)
	// Address is where another replica is reached, "" where that is not known.
	Address(replica string) string
}

// Peers are the other replicas, by name: who of them lives, and what they answer. A nil one
// has none.
type Peers struct {
	Registry Registry
	// Replica is this one's name.
	Replica string
	// Files are this daemon's certificates, which it shows to the others.
	Files *pki.Files

	client peerClient
}

// Peers are the other replicas to whom this one shows its certificates; nil where there can
// be none.
func (s *Shared) Peers(files *pki.Files) *Peers {
	shared, ok := s.Store.(*store.Shared)
	if !ok || files == nil {
		return nil
	}
	return &Peers{Registry: shared, Replica: s.Replica, Files: files}
}

// Name of this replica, "" where there are no others.
func (p *Peers) Name() string {
	if p == nil {
		return ""
	}
	return p.Replica
}

// Others are the replicas that answer, as far as is known.
func (p *Peers) Others() []string {
	if p == nil {
		return nil
	}
	live, _ := p.Registry.Live()
	return slices.DeleteFunc(live, func(name string) bool { return name == p.Replica })
}

// Lost reports whether no replica of that name lives. While the store is cut off nobody is.
func (p *Peers) Lost(replica string) bool {
	if p == nil {
		return true
	}
	live, cut := p.Registry.Live()
	return !cut && !slices.Contains(live, replica) && p.Registry.Address(replica) == ""
}

// Ask has another replica answer at a path of its port for agents, in at most so many bytes.
// A *wire.Refusal is its own word.
func (p *Peers) Ask(ctx context.Context, replica, path string, in, out any, most int64) error {
	if p != nil {
		if address := p.Registry.Address(replica); address != "" {
			return p.client.bounded(ctx, p.Files, address, path, in, out, most)
		}
	}
	return errors.New("its address is not known")
}
