package upload

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// A filter is asked for where it is wanted and the server knows it, and nowhere else: a
// server that does not know it would end the connection.
func TestRequest(t *testing.T) {
	want, have := []tree.Hash{tree.BlobHash([]byte("new"))}, []tree.Hash{tree.BlobHash([]byte("old"))}
	for name, c := range map[string]struct {
		knows   bool
		largest uint64
		filter  string
	}{
		"wanted and known":     {true, 1 << 20, "filter blob:limit=1048577\n"},
		"wanted and not known": {false, 1 << 20, ""},
		"not wanted":           {true, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			caps := capability.NewList()
			if c.knows {
				if err := caps.Set(capability.Filter); err != nil {
					t.Fatal(err)
				}
			}
			req := Request(caps, want, have, c.largest)
			var sent bytes.Buffer
			if err := req.UploadRequest.Encode(&sent); err != nil {
				t.Fatal(err)
			}
			if got := sent.String(); !strings.Contains(got, c.filter) || strings.Contains(got, "filter") != (c.filter != "") || !strings.Contains(got, "want "+want[0].String()) {
				t.Errorf("sent %q, want the filter %q", got, c.filter)
			}
			if len(req.Haves) != 1 || tree.Hash(req.Haves[0]) != have[0] {
				t.Errorf("haves %v, want %v", req.Haves, have)
			}
		})
	}
}
