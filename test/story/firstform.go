package story

import (
	"context"
	_ "embed"
	"encoding/json"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// The repository of an unsigned fleet as a daemon left it that knew no trust
// root: its commits have none of the trailers Ledger, Fleet, Root, Renderer and
// Rules. It was written by the program of then, and is never written again.
var (
	//go:embed testdata/first-form.pack
	firstPack []byte
	//go:embed testdata/first-form.json
	firstRefs []byte
)

// FirstForm is the fleet of Lived with the history that a daemon wrote before
// there were trust roots. Today's daemon is started on it.
func FirstForm(t T) *Story {
	t.Helper()
	var was struct {
		At   time.Time
		Refs map[string]string
	}
	if err := json.Unmarshal(firstRefs, &was); err != nil {
		t.Fatal(err)
	}
	s := &Story{t: t, Remote: memremote.New(), pulls: &pulls{}, At: was.At, Ledger: "ledger"}
	var cmds []gitrepo.Command
	for ref, text := range was.Refs {
		h, err := tree.ParseHash(text)
		if err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, gitrepo.Command{Ref: ref, New: h})
	}
	if err := s.Remote.Push(context.Background(), cmds, firstPack); err != nil {
		t.Fatal(err)
	}
	s.Start()
	return s
}

// SignWith starts the daemon again with another key; nil: with none.
func (s *Story) SignWith(signer gitrepo.Signer) {
	s.t.Helper()
	s.signer = signer
	s.Start()
}
