package gitrepo_test

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// pkt is a line of git's protocol.
func pkt(text string) string {
	const digits = "0123456789abcdef"
	n := len(text) + 4
	return string([]byte{digits[n>>12&15], digits[n>>8&15], digits[n>>4&15], digits[n&15]}) + text
}

// FuzzGitServer: whatever a server answers to the questions for refs, for a pack
// and to a push, it is an error or the same refs each time; a pack is not taken
// for more than the server sent.
func FuzzGitServer(f *testing.F) {
	const h = "0123456789012345678901234567890123456789"
	refs := func(service, caps string, more ...string) string {
		return pkt("# service=git-"+service+"\n") + "0000" + pkt(h+" refs/heads/main\x00"+caps+"\n") + strings.Join(more, "") + "0000"
	}
	set := gitobj.Set{}
	set.Add(gitobj.Blob, []byte("hello"))
	pack, err := set.Pack()
	if err != nil {
		f.Fatal(err)
	}
	const caps = "side-band-64k ofs-delta agent=git/2.50"
	good := refs("upload-pack", caps, pkt(h+" refs/heads/ledger\n"))
	f.Add([]byte(good), []byte(pkt("NAK\n")+pkt("\x01"+string(pack))+"0000"))
	f.Add([]byte(good), []byte(pkt("NAK\n")+pkt("\x02counting\n")+pkt("\x03died\n")))
	f.Add([]byte(good), []byte(pkt("ERR \x1b[2Jno\n")))
	f.Add([]byte(good), []byte("NAK"))
	f.Add([]byte(refs("upload-pack", "shallow", pkt("shallow "+h+"\n"))), []byte(pkt("shallow "+h+"\n")+"0000"+pkt("NAK\n")+string(pack)))
	f.Add([]byte(refs("receive-pack", "report-status atomic", pkt(h+" refs/heads/../x\n"), pkt(h+" refs/heads/main\n"))), []byte(pkt("unpack ok\n")+pkt("ok refs/heads/main\n")+"0000"))
	f.Add([]byte("0000"), []byte("ffff"))
	f.Add([]byte("0004000500031234zzzz"), []byte("0001"))
	var answers atomic.Pointer[[2][]byte]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := *answers.Load()
		service := "upload-pack"
		if strings.Contains(r.URL.String(), "receive-pack") {
			service = "receive-pack"
		}
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			w.Header().Set("Content-Type", "application/x-git-"+service+"-advertisement")
			_, _ = w.Write([]byte(strings.Replace(string(a[0]), "upload-pack", service, 1))) // the client may have seen enough
			return
		}
		w.Header().Set("Content-Type", "application/x-git-"+service+"-result")
		_, _ = w.Write(a[1])
	}))
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, advertisement, answer []byte) {
		answers.Store(&[2][]byte{advertisement, answer})
		remote := dial(t, server.URL+"/fleet.git", gitrepo.Auth{})
		first, err := remote.Refs(t.Context())
		var second map[string]tree.Hash
		took := 0
		ferr := remote.Fetch(t.Context(), func(refs map[string]tree.Hash) (want, have []tree.Hash) {
			second = refs
			for _, h := range refs {
				return []tree.Hash{h}, nil
			}
			return nil, nil
		}, func(r io.Reader) error {
			b, err := io.ReadAll(r)
			took += len(b)
			return err
		})
		if err == nil && len(first) > 0 && !maps.Equal(first, second) {
			t.Fatalf("refs %v, then %v (%v)", first, second, ferr)
		}
		if took > len(answer) {
			t.Fatalf("a pack of %d bytes in an answer of %d", took, len(answer))
		}
		perr := remote.Push(t.Context(), []gitrepo.Command{{Ref: "refs/heads/main", New: tree.Hash{1}}}, pack)
		if perr == nil && !strings.Contains(string(answer), "ok") {
			t.Fatalf("a push counts as done, answered with %q", answer)
		}
		for _, err := range []error{err, ferr, perr} {
			if refused := new(gitrepo.Rejection); errors.As(err, &refused) && len(refused.Words) > len(answer)+len(advertisement)+1000 {
				t.Fatalf("the server refused with %d bytes", len(refused.Words))
			}
		}
	})
}
