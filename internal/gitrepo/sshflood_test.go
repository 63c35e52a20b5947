package gitrepo_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// A host that keeps the connection busy with what is no answer is given up, long before the
// operation's deadline: with requests to the connection or the channel before the first byte,
// with new keys for each of them, or with requests next to a pack that does not go on.
func TestSSHFloodsAreGivenUp(t *testing.T) {
	const advert = "1111111111111111111111111111111111111111 refs/heads/main\x00ofs-delta\n"
	refs := fmt.Sprintf("%04x%s0000", len(advert)+4, advert)
	requests := func(conn *ssh.ServerConn) {
		for payload := bytes.Repeat([]byte("x"), 16<<10); ; {
			if _, _, err := conn.SendRequest("flood@example.org", false, payload); err != nil {
				return
			}
		}
	}
	for what, c := range map[string]struct {
		flood func(*ssh.ServerConn, ssh.Channel)
		want  string
		set   func(*ssh.ServerConfig)
	}{
		"requests before the first byte": {func(conn *ssh.ServerConn, _ ssh.Channel) { requests(conn) }, "more refs or words than are taken", nil},
		"new keys for each request":      {func(conn *ssh.ServerConn, _ ssh.Channel) { requests(conn) }, "more refs or words than are taken", func(c *ssh.ServerConfig) { c.RekeyThreshold = 256 }},
		"requests that want an answer": {func(conn *ssh.ServerConn, _ ssh.Channel) {
			for range 64 {
				go func() {
					for {
						if _, _, err := conn.SendRequest("flood@example.org", true, make([]byte, 16<<10)); err != nil {
							return
						}
					}
				}()
			}
		}, "more refs or words than are taken", nil},
		"requests of the channel": {func(_ *ssh.ServerConn, ch ssh.Channel) {
			for {
				if _, err := ch.SendRequest("flood@example.org", false, make([]byte, 16<<10)); err != nil {
					return
				}
			}
		}, "more refs or words than are taken", nil},
		"requests next to a pack": {func(conn *ssh.ServerConn, ch ssh.Channel) {
			_, _ = io.WriteString(ch, refs)
			got := make([]byte, 0, 1024)
			for buf := make([]byte, 1024); !strings.Contains(string(got), "done"); {
				n, err := ch.Read(buf)
				if err != nil {
					return
				}
				got = append(got, buf[:n]...)
			}
			_, _ = io.WriteString(ch, "0008NAK\nPACK\x00\x00\x00\x02\x00\x00\x00\x01")
			requests(conn)
		}, "bytes more than twice its pack", nil},
	} {
		t.Run(what, func(t *testing.T) {
			auth, url, _ := serveSSHAs(t, func(conn *ssh.ServerConn, channels <-chan ssh.NewChannel) {
				for nc := range channels {
					ch, in, err := nc.Accept()
					if err != nil {
						return
					}
					go func() {
						for r := range in {
							_ = r.Reply(true, nil)
							if r.Type == "exec" {
								go c.flood(conn, ch)
							}
						}
					}()
				}
			}, func(cfg *ssh.ServerConfig) {
				if c.set != nil {
					c.set(cfg)
				}
			})
			ended := make(chan error, 1)
			go func() {
				ended <- dial(t, url, auth).Fetch(t.Context(), func(all map[string]tree.Hash) (want, have []tree.Hash) {
					for _, h := range all {
						want = append(want, h)
					}
					return want, nil
				}, func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err })
			}()
			select {
			case err := <-ended:
				if stalled := new(gitrepo.StalledError); !errors.As(err, &stalled) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			case <-time.After(45 * time.Second):
				t.Fatal("it goes on for 45 s")
			}
		})
	}
}
