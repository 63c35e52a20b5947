package gitrepo

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// Remote is the repository as the network offers it: the seam at which a
// simulation replaces it. Dial makes the real one, memremote the deterministic
// in-memory one. Implementations are safe for concurrent use.
type Remote interface {
	// Refs lists the refs that point at objects. A repository without any is an
	// empty map and no error.
	Refs(ctx context.Context) (map[string]tree.Hash, error)
	// Fetch reads the refs, lets choose decide by them what it wants and already
	// has, and gives sink the pack of everything reachable from want that is not
	// reachable from have; an empty want ends there. Refs and pack come from one
	// session, because a server gives out only what a ref points at then. Names
	// in have that the remote does not know are harmless.
	Fetch(ctx context.Context, choose func(refs map[string]tree.Hash) (want, have []tree.Hash), sink func(pack io.Reader) error) error
	// Push updates refs, each compared with its old value and swapped at the
	// server, all or none where the server can; where it cannot, one after the
	// other in the order given, stopping at the first failure. What a server
	// took of a push that it refused in part is moved back. A nil error means
	// that every command was acknowledged. An error says NOTHING about whether
	// the commands took effect: only Refs does. A *Rejection among an error's
	// causes means that the server itself answered no.
	Push(ctx context.Context, cmds []Command, pack []byte) error
}

// Command is one ref's update. A zero Old creates the ref, a zero New deletes
// it.
type Command struct {
	Ref      string
	Old, New tree.Hash
}

// String is for messages.
func (c Command) String() string {
	return fmt.Sprintf("%s %s..%s", c.Ref, c.Old.Short(), c.New.Short())
}

// Rejection is a push that the server answered with no. Words are the
// server's, for people to read; servers differ too much to decide by them.
type Rejection struct {
	Words string
}

// Error implements error.
func (r *Rejection) Error() string { return "the server refused: " + r.Words }

// Branch is the full ref name of a branch.
func Branch(name string) string {
	if strings.HasPrefix(name, "refs/") {
		return name
	}
	return "refs/heads/" + name
}
