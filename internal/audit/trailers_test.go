package audit_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// TestVerify_TrailersOfCommitsThatDecideNothing: a commit that changes no file, or
// only undoes others' edits, is held to what it states all the same.
func TestVerify_TrailersOfCommitsThatDecideNothing(t *testing.T) {
	for name, c := range map[string]struct {
		trailers map[string]string
		says     string
	}{
		"honest":               {},
		"no inputs":            {map[string]string{"Inputs": ""}, `Inputs names no commit of the inputs: ""`},
		"inputs off the line":  {map[string]string{"Inputs": strings.Repeat("ab", 20)}, "are not in the repository"},
		"no market":            {map[string]string{"Market": "none"}, `Market names no tree: "none"`},
		"no time":              {map[string]string{"Now": "noon"}, `Now is no time: "noon"`},
		"a time long before":   {map[string]string{"Now": "2026-11-01T00:00:00Z"}, "Now is 2026-11-01T00:00:00Z, more than 10m0s before that of a commit that it follows"},
		"a time of the future": {map[string]string{"Now": "2036-11-01T00:00:00Z"}, "after the commit was made"},
		"a number too many":    {map[string]string{"Ledger": "ledger 99"}, "Ledger is 99, the one before "},
		"a record":             {map[string]string{"Round": strings.Repeat("ab", 20)}, "and the commit decides nothing"},
		"pieces set aside":     {map[string]string{"Set-Aside": "intents/vision abc died"}, `Set-Aside says ["intents/vision abc died"], what it changes is []`},
	} {
		for _, plan := range []string{"accept", "undo"} {
			t.Run(plan+" "+name, func(t *testing.T) {
				s := lived(t, "ledger", nil, "")
				s.forge(forged{puts: request("a")})
				trailers := map[string]string{"Plan": plan}
				maps.Copy(trailers, c.trailers)
				s.forge(forged{trailers: trailers})
				_, bad := s.judge(func(o *audit.Options) { o.Branch = "ledger" })
				if c.says == "" && len(bad) > 0 || c.says != "" && (len(bad) == 0 || !strings.Contains(bad[0], c.says)) {
					t.Errorf("violations %v, want %q", bad, c.says)
				}
			})
		}
	}
}

// TestVerify_MessageAndRecord: a commit speaks of the intents that it changes, and
// names the record of what it decided on.
func TestVerify_MessageAndRecord(t *testing.T) {
	for name, c := range map[string]struct {
		line  string
		round string
		says  string
	}{
		"honest":               {line: "place vision/train on paris/h100 (1 GPU)"},
		"a sum":                {line: "1 placed, 2 queued"},
		"another intent":       {"release vision/serve from paris/h100 (its intent is gone)", "", `the message says "release vision/serve from paris/h100 (its intent is gone)", and the commit changes nothing of vision/serve`},
		"a notice to another":  {"give notice to nlp/serve on paris/h100", "", "changes nothing of nlp/serve"},
		"a record by no name":  {"", "yes", `Round names no record: "yes"`},
		"no record, once more": {"", "-", "the commit has no Round, so that what it decides cannot be decided again"},
	} {
		t.Run(name, func(t *testing.T) {
			s := lived(t, "ledger", nil, "")
			s.At = s.At.Add(time.Minute)
			f := forged{changes: changed(nil, s.decided(again(s.Contract("train"), 1, s.At), 8)), now: s.At, line: c.line}
			switch c.round {
			case "":
			case "-":
				f.trailers = map[string]string{"Round": ""}
			default:
				f.trailers = map[string]string{"Round": c.round}
			}
			s.forge(f)
			_, bad := s.judge(func(*audit.Options) {})
			if c.says == "" && len(bad) > 0 || c.says != "" && (len(bad) != 1 || !strings.Contains(bad[0], c.says)) {
				t.Errorf("violations %v, want %q", bad, c.says)
			}
		})
	}
}

// TestVerify_Verified: every commit says up to which commit its inputs are
// verified, one that only renders again too, and one that names older inputs of the
// same content.
func TestVerify_Verified(t *testing.T) {
	for _, plan := range []string{"", "render", "undo", "sweep", "policies", "set-aside"} {
		s := lived(t, "ledger", nil, "")
		log, err := s.Remote.Log("main")
		if err != nil {
			t.Fatal(err)
		}
		head, before := log[0].Hash, log[1].Hash
		same, err := s.Remote.Merge("main", s.Ada(), "The same", gitobj.Change{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.forge(forged{puts: request("a")})
		for name, c := range map[string]struct{ inputs, verified, says string }{
			"not so far":        {same.String(), before.String(), "are verified up to " + same.Short() + ", the commit says up to " + before.Short()},
			"no commit":         {same.String(), "nothing", `Verified names no commit: "nothing"`},
			"further":           {head.String(), same.String(), "Verified names " + same.Short() + ", which is no ancestor of inputs " + head.Short()},
			"older and as told": {head.String(), head.String(), ""},
			"of no repository":  {head.String(), strings.Repeat("ab", 20), "which is not in the repository"},
		} {
			trailers := map[string]string{"Inputs": c.inputs, "Verified": c.verified}
			if plan != "" {
				trailers["Plan"] = plan
			}
			ledger := s.Remote.Head("ledger")
			s.forge(forged{puts: request("b"), trailers: trailers})
			_, bad := s.judge(func(*audit.Options) {})
			found := slices.ContainsFunc(bad, func(v string) bool { return strings.HasPrefix(v, "inputs: ") && strings.Contains(v, c.says) })
			if found != (c.says != "") {
				t.Errorf("%s %s: violations %v, want %q", plan, name, bad, c.says)
			}
			s.Remote.SetRef(gitrepo.Branch("ledger"), ledger)
		}
	}
}

// A commit that says a trailer twice is nobody's, whatever key signed it: one program reads
// the first value, another the last. Daemons take it for another account's as well
// (TestOurs_SaysNothingTwice).
func TestVerify_TrailersSaidTwice(t *testing.T) {
	for _, line := range []string{"Ledger: ledger 9", "Rules: 1", "Rules:1", "Rules : 1", "renderer: 1", "Fleet: another", "Plan: undo", "Now: 2026-11-01T00:00:00Z", "Inputs: " + strings.Repeat("ab", 20)} {
		t.Run(line, func(t *testing.T) {
			s, root, signer := rooted(t, "ledger")
			with := func(o *audit.Options) { o.Root, o.Branch = root, "ledger" }
			honest, bad := s.judge(with)
			if len(bad) > 0 {
				t.Fatal(bad)
			}
			s.forge(forged{puts: request("a"), contracts: []string{line}, trailers: map[string]string{"Rules": "16", "Renderer": "2", "Fleet": root.ID()}, signer: signer})
			head := s.Remote.Head("ledger").String()
			rep, bad := s.judge(with)
			key, _, _ := strings.Cut(strings.ReplaceAll(line, " ", ""), ":")
			if !slices.ContainsFunc(bad, func(b string) bool {
				return strings.HasPrefix(strings.ToLower(b), "trailers: it says "+strings.ToLower(key)+" twice")
			}) || rep.Violations[0].Commit != head {
				t.Errorf("violations %v", bad)
			}
			if !slices.ContainsFunc(rep.Violations, func(v audit.Violation) bool { return v.Rule == "foreign" }) || rep.Seq != honest.Seq || rep.Fleet != honest.Fleet {
				t.Errorf("it was taken for the daemon's: %v, seq %d after %d", bad, rep.Seq, honest.Seq)
			}
			if by, why, err := audit.Vouched(t.Context(), s.Remote.Objects(), s.Remote.Head("ledger"), root, nil); err != nil || by != "" || !strings.Contains(why, "twice") {
				t.Errorf("vouched for by %q: %s, %v", by, why, err)
			}
		})
	}
	unsigned := lived(t, "ledger", nil, "")
	unsigned.forge(forged{puts: request("a"), contracts: []string{"Plan: undo"}})
	if _, bad := unsigned.judge(func(*audit.Options) {}); len(bad) != 2 || !strings.HasPrefix(bad[0], "trailers: it says Plan twice") || !strings.HasPrefix(bad[1], "foreign: ") {
		t.Errorf("unsigned: %v", bad)
	}
}

// What a person writes into a message of their own is theirs: a pull request whose message
// says a trailer of the ledger twice, merged into the branch, is no violation, which nobody
// could ever take out of the history.
func TestVerify_PeopleMaySayThingsTwice(t *testing.T) {
	for name, message := range map[string]string{
		"numbers": "Raise the quota\n\nLedger: a\nLedger: b\n",
		"plans":   "Raise the quota\n\nPlan: first\nPlan: second\nLedger: a\n",
	} {
		t.Run(name, func(t *testing.T) {
			s, root, signer := rooted(t, "ledger")
			if _, err := s.Remote.Merge("ledger", s.Ada(), message, gitobj.Change{Puts: map[string][]byte{"notes.md": []byte("hello\n")}}, nil); err != nil {
				t.Fatal(err)
			}
			with := func(o *audit.Options) { o.Root, o.Branch = root, "ledger" }
			if _, bad := s.judge(with); len(bad) > 0 {
				t.Errorf("violations %v", bad)
			}
			if _, err := s.Remote.Merge("ledger", s.Ada(), message, gitobj.Change{Puts: map[string][]byte{"notes.md": []byte("hello again\n")}}, signer); err != nil {
				t.Fatal(err)
			}
			if _, bad := s.judge(with); len(bad) != 1 || !strings.HasPrefix(bad[0], "trailers: it says ") {
				t.Errorf("signed by the daemon's key: violations %v", bad)
			}
		})
	}
}
