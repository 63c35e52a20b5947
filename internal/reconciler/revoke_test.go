package reconciler

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestABrokenRevocationListKeepsTheLastGoodOne: while the daemon runs, and over
// a restart; and it stops no round.
func TestABrokenRevocationListKeepsTheLastGoodOne(t *testing.T) {
	s := newStory(t, "ledger")
	var force string
	var tried []string
	watch := func() {
		force, tried = "", nil
		s.r.opts.Revoke = func(crl []byte) error {
			tried = append(tried, string(crl))
			if !strings.HasPrefix(string(crl), "good") {
				return errors.New("broken")
			}
			force = string(crl)
			return nil
		}
	}
	watch()
	s.rest()
	if len(tried) != 0 {
		t.Errorf("without a list: %q", tried)
	}
	s.push(map[string]string{"pki/revoked.crl": "good 1"})
	s.rest()
	if force != "good 1" {
		t.Errorf("in force is %q", force)
	}
	s.push(map[string]string{"pki/revoked.crl": "bad", "intents/vision/train.yaml": intentOf("train", "1")})
	if got := s.rest(); force != "good 1" || len(got) == 0 {
		t.Errorf("in force is %q, committed %q", force, got)
	}
	s.push(map[string]string{"pki/revoked.crl": strings.Repeat("good", 1<<20)})
	s.rest()
	if force != "good 1" || slices.Contains(tried, strings.Repeat("good", 1<<20)) {
		t.Error("a list of 4 MiB was handed on")
	}
	s.start()
	watch()
	s.rest()
	if force != "good 1" {
		t.Errorf("after a restart %q is in force", force)
	}
	// A list takes effect although the rest of the inputs cannot be read.
	s.push(map[string]string{"pki/revoked.crl": "good 2", "fleet.yaml": "nonsense: ["})
	s.rest()
	if force != "good 2" {
		t.Errorf("beside a broken fleet.yaml %q is in force", force)
	}
	s.lines.Wants(t, "FB1171", "FB1183")
}
