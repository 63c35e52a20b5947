package audit_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/ledger"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/test/story"
)

func TestAnHonestHistoryHasNoViolations(t *testing.T) {
	signer, public := story.SSHKey(t)
	for name, c := range map[string]struct {
		branch, public string
		signer         gitrepo.Signer
	}{
		"TwoBranches": {branch: "ledger"},
		"OneBranch":   {branch: "main"},
		"Signed":      {branch: "ledger", signer: signer, public: public},
	} {
		t.Run(name, func(t *testing.T) {
			s := lived(t, c.branch, c.signer, c.public)
			rep := s.verify()
			if len(rep.Violations) > 0 {
				t.Errorf("%d violations, the first: %s", len(rep.Violations), rep.Violations[0])
			}
			if rep.Contracts != 3 || rep.Decisions < 8 {
				t.Errorf("%d contracts and %d decisions, want 3 and at least 8", rep.Contracts, rep.Decisions)
			}
			// What the tests plant must be wrong in just what they plant.
			before := s.Contract("train")
			if c.signer == nil {
				s.forge(forged{changes: changed(before, before), puts: map[string][]byte{"requests/vision/202611/x.yaml": []byte("x\n")}, withoutContracts: true})
				if rep := s.verify(); len(rep.Violations) > 0 {
					t.Errorf("an honest commit made by hand: %s", rep.Violations[0])
				}
			}
		})
	}
}

// Policies that follow a Cluster file are a commit of their own.
func TestPoliciesThatFollowTheirCluster(t *testing.T) {
	s := lived(t, "ledger", nil, "")
	s.Push("Let CI in", map[string]string{"clusters/rome.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Cluster\nmetadata: {name: rome}\nspec: {roles: [consumer], deliverers: [ci@example.org]}\n"})
	s.Rest()
	log, err := s.Remote.Log(s.Ledger)
	if err != nil || !strings.HasPrefix(log[0].Message, "render manifests of rome again: ") {
		t.Fatalf("the newest commit is %q, %v", log[0].Message, err)
	}
	if rep := s.verify(); len(rep.Violations) > 0 {
		t.Errorf("%d violations, the first: %s", len(rep.Violations), rep.Violations[0])
	}
}

// What an older version wrote, reason and message in one text, verifies, and so does
// what is written after it.
func TestVerify_ReasonsOfTheOlderForm(t *testing.T) {
	s := lived(t, "ledger", nil, "")
	books := ledger.Books{Zone: time.UTC, Currency: "EUR"}
	step := func(form func(*v1alpha1.Contract) *v1alpha1.Contract, to v1alpha1.Phase, reason ledger.Reason) {
		t.Helper()
		s.At = s.At.Add(time.Minute)
		was := s.Contract("train")
		is, err := books.Transition(was, to, reason, v1alpha1.TimeOf(s.At))
		if err != nil {
			t.Fatal(err)
		}
		s.forge(forged{now: s.At, changes: ledger.Changes{Contracts: []model.Change{{Before: was, After: form(is)}}}})
	}
	today := func(c *v1alpha1.Contract) *v1alpha1.Contract { return c }
	step(ledger.Together, v1alpha1.PhaseDegraded, ledger.Reason{Code: ledger.DegradedNodeNotReady, Message: "kubelet stopped: on n1"})
	if got := s.Contract("train").Status; got.Reason != ledger.DegradedNodeNotReady || got.Message != "kubelet stopped: on n1" {
		t.Errorf("the older form is read as %+v", got)
	}
	step(ledger.Together, v1alpha1.PhaseActive, ledger.Reason{})
	step(today, v1alpha1.PhaseDegraded, ledger.Reason{Code: ledger.DegradedNodeNotReady, Message: "kubelet stopped"})
	if rep := s.verify(); len(rep.Violations) > 0 {
		t.Errorf("%d violations, the first: %s", len(rep.Violations), rep.Violations[0])
	}
}

// What another version rendered is not compared, and said so for each commit:
// neither a violation nor silence. What has no number is rendered as by 1.
func TestOtherRenderingsAreNotCompared(t *testing.T) {
	newer := strconv.Itoa(manifests.Renderer + 1)
	s := lived(t, "ledger", nil, "")
	other := map[string][]byte{"manifests/rome/namespaces/policies/namespace-guard.yaml": []byte("# as it renders it\n")}
	s.forge(forged{trailers: map[string]string{"Plan": "render", "Renderer": newer}, puts: other})
	now := s.At.Add(time.Minute)
	s.At = now
	was := s.Contract("train")
	is := ledger.Books{Zone: time.UTC, Currency: "EUR"}.Settle(was, v1alpha1.TimeOf(now))
	s.forge(forged{trailers: map[string]string{"Renderer": newer}, now: now, changes: ledger.Changes{Contracts: []model.Change{{Before: was, After: is}}}, puts: map[string][]byte{"manifests/rome/namespaces/policies/intent-guard.yaml": []byte("# as it renders it\n")}})
	rep := s.verify()
	if len(rep.Violations) > 0 {
		t.Errorf("%d violations, the first: %s", len(rep.Violations), rep.Violations[0])
	}
	if len(rep.Notes) != 1 || rep.Notes[0].Commits != 2 || !strings.HasPrefix(rep.Notes[0].Message, "manifests rendered by "+newer+", not compared") {
		t.Errorf("notes: %v", rep.Notes)
	}
}

// A ledger that begins while files are broken goes by their last good versions,
// which stand in the history alone.
func TestBegunOnBrokenFiles(t *testing.T) {
	for _, path := range []string{"fleet.yaml", "tenants/vision.yaml", "flavors/paris/h100.yaml"} {
		s := &fleet{story.New(t, "ledger", nil, ""), t}
		s.Ask("train", 4, "")
		s.Push("Break", map[string]string{path: "{\n"})
		s.Rest()
		if c := s.Contract("train"); c.Spec.GPUs.Count != 4 {
			t.Errorf("%s: %+v", path, c.Spec)
		}
		if rep := s.verify(); len(rep.Violations) > 0 || rep.Contracts != 1 {
			t.Errorf("%s: %d contracts and violations %v", path, rep.Contracts, rep.Violations)
		}
	}
}

// again is a contract like c for another replica.
func again(c *v1alpha1.Contract, gpus int64, at time.Time) *v1alpha1.Contract {
	out := *c
	now := v1alpha1.TimeOf(at)
	out.Metadata.Name = "vision-train-9-aaaaaaaa"
	out.Spec.Slice = out.Metadata.Name
	out.Spec.Intent.Replica = 9
	out.Spec.Resources = c.Spec.Resources.Clone()
	out.Spec.Resources["nvidia.com/gpu"] = v1alpha1.AmountOf(gpus)
	g := *c.Spec.GPUs
	g.Count = gpus
	out.Spec.GPUs = &g
	out.Spec.Term.Start = now
	ledger.Begin(&out, ledger.Reason{}, now)
	return &out
}

// What the server took of a round in several commits was decided at once: a
// contract's figures need not hold what an earlier one of them brought. Of
// another round they must.
func TestOneRoundInParts(t *testing.T) {
	for round, says := range map[string]string{"1": "", "2": "its figures say that others hold 8 cpu of paris/h100, the ledger says 12"} {
		s := lived(t, "ledger", nil, "")
		s.At = s.At.Add(time.Minute)
		one, two := again(s.Contract("train"), 1, s.At), again(s.Contract("train"), 1, s.At)
		two.Metadata.Name, two.Spec.Slice, two.Spec.Intent.Replica = "vision-train-10-aaaaaaaa", "vision-train-10-aaaaaaaa", 10
		one, two = s.decided(one, 8), s.decided(two, 8)
		s.forge(forged{now: s.At, changes: changed(nil, one), trailers: map[string]string{"Round": strings.Repeat("1", 40)}})
		s.forge(forged{now: s.At, changes: changed(nil, two), trailers: map[string]string{"Round": strings.Repeat(round, 40)}})
		if says != "" {
			s.finds(t, "oversold", says)
		} else if rep := s.verify(); len(rep.Violations) > 0 {
			t.Errorf("a round in parts: %v", rep.Violations)
		}
	}
}

// Each of these is planted by somebody who holds the daemon's name and knows
// everything else, and just the rule that is broken is told, at its commit.
func TestPlantedViolations(t *testing.T) {
	at := func(s *fleet) (time.Time, v1alpha1.Time) {
		s.At = s.At.Add(time.Minute)
		return s.At, v1alpha1.TimeOf(s.At)
	}
	books := ledger.Books{Zone: time.UTC, Currency: "EUR"}
	for name, c := range map[string]struct {
		rule, says string
		plant      func(t *testing.T, s *fleet)
	}{
		"a contract beyond the capacity, its figures true": {"oversold", "takes 12 gpu of paris/h100, of which its own figures leave", func(_ *testing.T, s *fleet) {
			now, _ := at(s)
			s.forge(forged{now: now, changes: changed(nil, s.decided(again(s.Contract("train"), 12, now), 8))})
		}},
		"a contract beyond the capacity, its figures false": {"oversold", "its figures say that others hold 0 gpu of paris/h100, the ledger says 8", func(_ *testing.T, s *fleet) {
			now, _ := at(s)
			s.forge(forged{now: now, changes: changed(nil, s.decided(again(s.Contract("train"), 12, now), 0))})
		}},
		"a contract that was made bigger": {"contract", "nvidia.com/gpu was 6 and is 7, without a new decision", func(_ *testing.T, s *fleet) {
			was := s.Contract("train")
			is := *was
			is.Spec.Resources = was.Spec.Resources.Clone()
			is.Spec.Resources["nvidia.com/gpu"] = v1alpha1.AmountOf(7)
			s.forge(forged{changes: changed(was, &is), trailers: otherMarket})
		}},
		"a contract that was made cheaper": {"contract", "its price was 15 EUR/h", func(_ *testing.T, s *fleet) {
			was := s.Contract("train")
			now, when := at(s)
			is := *books.Settle(was, when)
			is.Spec.Price.Hourly = v1alpha1.DecimalFromInt(1)
			s.forge(forged{now: now, changes: changed(was, &is), trailers: otherMarket})
		}},
		"a contract moved to another provider": {"contract", "provider was paris and is oslo", func(_ *testing.T, s *fleet) {
			was := s.Contract("train")
			is := *was
			is.Spec.Provider = "oslo"
			s.forge(forged{changes: changed(was, &is), trailers: otherMarket})
		}},
		"a contract without an intent": {"intent", "there is no intent vision/ghost in the inputs", func(_ *testing.T, s *fleet) {
			now, _ := at(s)
			ghost := s.decided(again(s.Contract("train"), 1, now), 8)
			ghost.Metadata.Name, ghost.Spec.Slice = "vision-ghost-0-aaaaaaaa", "vision-ghost-0-aaaaaaaa"
			ghost.Spec.Intent.Name, ghost.Spec.Intent.Path = "ghost", "intents/vision/ghost.yaml"
			s.forge(forged{now: now, changes: changed(nil, ghost)})
		}},
		"a contract for another version of its intent": {"intent", "has digest", func(_ *testing.T, s *fleet) {
			now, _ := at(s)
			c := s.decided(again(s.Contract("train"), 1, now), 8)
			c.Spec.Intent.Digest = "sha256:00"
			s.forge(forged{now: now, changes: changed(nil, c)})
		}},
		"a contract in another's name": {"intent", "was last changed by Ada L. <ada@example.org>", func(_ *testing.T, s *fleet) {
			now, _ := at(s)
			c := s.decided(again(s.Contract("train"), 1, now), 8)
			c.Spec.Intent.Author = "Mallory <m@example.org>"
			s.forge(forged{now: now, changes: changed(nil, c)})
		}},
		"manifests that the contracts do not render to": {"manifests", "differs from what the contracts render to: line", func(t *testing.T, s *fleet) {
			now, when := at(s)
			was := s.Contract("train")
			is, err := books.Transition(was, v1alpha1.PhaseDegraded, ledger.Reason{Code: ledger.DegradedNodeNotReady}, when)
			if err != nil {
				t.Fatal(err)
			}
			s.forge(forged{now: now, changes: changed(was, is), puts: map[string][]byte{"manifests/rome/vision/" + ledger.Shard("train") + "/" + was.Metadata.Name + "-slice.yaml": []byte("kind: ResourceSlice\n")}})
		}},
		"a contract without manifests": {"manifests", "is missing: the contracts render to", func(_ *testing.T, s *fleet) {
			now, _ := at(s)
			s.forge(forged{now: now, changes: changed(nil, s.decided(again(s.Contract("train"), 1, now), 8)), withoutManifests: true})
		}},
		"manifests of nothing": {"manifests", "changed, but no contract of the commit has to do with it", func(_ *testing.T, s *fleet) {
			s.forge(forged{puts: map[string][]byte{"manifests/rome/vision/extra.yaml": []byte("kind: Secret\n")}})
		}},
		"generated files written by somebody else": {"foreign", "changed by Ada L. <ada@example.org>, who is not the daemon: Make it cheaper", func(t *testing.T, s *fleet) {
			if _, err := s.Remote.Commit(s.Ledger, s.Ada(), "Make it cheaper", gitobj.Change{Puts: map[string][]byte{ledger.ContractPath(s.Contract("train")): []byte("price: 0\n")}}); err != nil {
				t.Fatal(err)
			}
		}},
		"an undo of what nobody had done": {"foreign", "undone, but nobody else had changed it", func(_ *testing.T, s *fleet) {
			s.forge(forged{trailers: map[string]string{"Plan": "undo"}, deletes: []string{ledger.ContractPath(s.Contract("serve"))}})
		}},
		"a sweep of a contract": {"trailers", "changed by a commit that only takes requests out", func(_ *testing.T, s *fleet) {
			s.forge(forged{trailers: map[string]string{"Plan": "sweep"}, deletes: []string{ledger.ContractPath(s.Contract("serve"))}})
		}},
		"policies that let somebody else in": {"manifests", "differs from what the Cluster file renders to", func(_ *testing.T, s *fleet) {
			s.forge(forged{trailers: map[string]string{"Plan": "policies"}, puts: map[string][]byte{"manifests/rome/namespaces/policies/namespace-guard.yaml": []byte("kind: Secret\n")}})
		}},
		"a contract beside policies": {"trailers", "changed by a commit that only brings policies up to date", func(_ *testing.T, s *fleet) {
			s.forge(forged{trailers: map[string]string{"Plan": "policies"}, deletes: []string{ledger.ContractPath(s.Contract("serve"))}})
		}},
		"a rendering of something else": {"manifests", "differs from what the contracts render to", func(_ *testing.T, s *fleet) {
			s.forge(forged{trailers: map[string]string{"Plan": "render"}, puts: map[string][]byte{"manifests/rome/namespaces/policies/namespace-guard.yaml": []byte("kind: Secret\n")}})
		}},
		"a rendering of what is not there": {"manifests", "exists, but no contract renders to it", func(_ *testing.T, s *fleet) {
			s.forge(forged{trailers: map[string]string{"Plan": "render"}, puts: map[string][]byte{"manifests/rome/namespaces/policies/inject.yaml": []byte("kind: MutatingAdmissionPolicy\n")}})
		}},
		"a rendering that takes a guard": {"manifests", "is missing: the contracts render to", func(_ *testing.T, s *fleet) {
			s.forge(forged{trailers: map[string]string{"Plan": "render"}, deletes: []string{"manifests/rome/namespaces/policies/namespace-guard.yaml"}})
		}},
		"a contract beside a rendering": {"trailers", "changed by a commit that only renders", func(_ *testing.T, s *fleet) {
			s.forge(forged{trailers: map[string]string{"Plan": "render"}, deletes: []string{ledger.ContractPath(s.Contract("serve"))}})
		}},
		"spend that was made less": {"spend", "the file says 0.01 (list", func(_ *testing.T, s *fleet) {
			now, when := at(s)
			was := s.Contract("train")
			is := books.Settle(was, when)
			m := is.Status.Months["2026-11"]
			m.Amount, _ = v1alpha1.ParseDecimal("0.01")
			is.Status.Months = map[string]v1alpha1.MonthCost{"2026-11": m}
			s.forge(forged{now: now, changes: changed(was, is)})
		}},
		"spend of what has left the tree, made less": {"spend", "vision-brief-0-", func(_ *testing.T, s *fleet) {
			old := s.Read().Spend("vision", "2026-11")
			is := *old
			is.Entries = slices.Clone(old.Entries)
			is.Entries[0].Amount = v1alpha1.Zero
			s.forge(forged{changes: ledger.Changes{Spends: []*v1alpha1.Spend{&is}}})
		}},
		"spend that an intent's state forgets": {"spend", "contracts that left the tree cost", func(_ *testing.T, s *fleet) {
			was := s.Read().State("vision", "train")
			is := *was
			one := v1alpha1.DecimalFromInt(1)
			is.Status.Spent, is.Status.Currency = &one, "EUR"
			s.forge(forged{changes: ledger.Changes{States: []model.StateChange{{Before: was, After: &is}}}})
		}},
		"a phase that does not follow": {"phases", "goes from Active to Released, which the phase table does not have", func(_ *testing.T, s *fleet) {
			now, when := at(s)
			was := s.Contract("train")
			is := *books.Settle(was, when)
			is.Status.Phase, is.Status.Since, is.Status.Target = v1alpha1.PhaseReleased, when, v1alpha1.PhaseReleased
			is.Status.History = append(slices.Clone(was.Status.History), v1alpha1.PhaseChange{Phase: v1alpha1.PhaseReleased, At: when})
			s.forge(forged{now: now, changes: changed(was, &is)})
		}},
		"a history that was written anew": {"phases", "its history was rewritten", func(_ *testing.T, s *fleet) {
			was := s.Contract("train")
			is := *was
			is.Status.History = slices.Clone(was.Status.History)
			is.Status.History[0].At = v1alpha1.TimeOf(s.At)
			s.forge(forged{changes: changed(was, &is)})
		}},
		"a contract deleted before its end": {"phases", "deleted while Active", func(_ *testing.T, s *fleet) {
			s.forge(forged{changes: s.gone("serve")})
		}},
		"a plan's digest that was written anew": {"plan", "Plan says sha256:00", func(_ *testing.T, s *fleet) {
			now, _ := at(s)
			s.forge(forged{now: now, changes: changed(nil, s.decided(again(s.Contract("train"), 1, now), 8)), trailers: map[string]string{"Plan": "sha256:00"}})
		}},
		"a contract that the message keeps quiet about": {"trailers", `the contract goes - -> Reserved, the commit's Contract line says ""`, func(_ *testing.T, s *fleet) {
			now, _ := at(s)
			s.forge(forged{now: now, changes: changed(nil, s.decided(again(s.Contract("train"), 1, now), 8)), withoutContracts: true})
		}},
		"a message that tells of a contract that is not there": {"trailers", "and no file of the commit does", func(_ *testing.T, s *fleet) {
			s.forge(forged{puts: map[string][]byte{"requests/vision/202611/x.yaml": []byte("x\n")}, contracts: []string{"Contract: vision-nobody-0-aaaaaaaa - -> Reserved"}})
		}},
		"inputs that are nowhere": {"inputs", "are not in the repository", func(_ *testing.T, s *fleet) {
			s.forge(forged{puts: map[string][]byte{"requests/vision/202611/x.yaml": []byte("x\n")}, trailers: map[string]string{"Inputs": strings.Repeat("ab", 20)}})
		}},
		"inputs on no branch": {"inputs", "are not on the inputs branch", func(t *testing.T, s *fleet) {
			aside, err := s.Remote.Rewrite("aside", s.Remote.Head("main"), s.Ada(), "My own rules", gitobj.Change{Puts: map[string][]byte{"README.md": []byte("x\n")}})
			if err != nil {
				t.Fatal(err)
			}
			s.forge(forged{puts: map[string][]byte{"requests/vision/202611/x.yaml": []byte("x\n")}, trailers: map[string]string{"Inputs": aside.String()}})
		}},
		"inputs of the past": {"inputs", "are older than", func(t *testing.T, s *fleet) {
			log, err := s.Remote.Log("main")
			if err != nil {
				t.Fatal(err)
			}
			s.forge(forged{puts: map[string][]byte{"requests/vision/202611/x.yaml": []byte("x\n")}, trailers: map[string]string{"Inputs": log[len(log)-2].Hash.String()}})
		}},
		"a file that is none of the ledger's": {"readable", "no contract, state or spend belongs here", func(_ *testing.T, s *fleet) {
			s.forge(forged{puts: map[string][]byte{"contracts/notes.txt": []byte("x\n")}})
		}},
		"a contract that cannot be read": {"readable", "unknown field", func(_ *testing.T, s *fleet) {
			s.forge(forged{puts: map[string][]byte{ledger.IntentDir("vision", "train") + "/vision-train-9-aaaaaaaa.yaml": []byte("kind: Contract\nfree: lunch\n")}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := lived(t, "ledger", nil, "")
			c.plant(t, s)
			s.finds(t, c.rule, c.says)
		})
	}
}

var otherMarket = map[string]string{"Market": strings.Repeat("0", 40)}

// finds demands that violations of one rule are found, at the head alone.
func (s *fleet) finds(t *testing.T, rule, says string) {
	t.Helper()
	rep := s.verify()
	head := s.Remote.Head(s.Ledger).String()
	told := false
	for _, v := range rep.Violations {
		if v.Rule != rule || v.Commit != head {
			t.Errorf("another violation: %s", v)
		}
		told = told || strings.Contains(v.Message, says)
	}
	if !told {
		t.Errorf("no %s violation says %q: %v", rule, says, rep.Violations)
	}
}

// decided gives a contract the market of the newest commit, and figures in
// which others hold so many GPUs.
func (s *fleet) decided(c *v1alpha1.Contract, held int64) *v1alpha1.Contract {
	c.Decision.Market = s.Contract("train").Decision.Market
	log, err := s.Remote.Log(s.Ledger)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, l := range log {
		if m := gitobj.Trailers(l.Message, "Market"); len(m) > 0 {
			c.Decision.Market = m[0]
			break
		}
	}
	c.Spec.Intent.Commit = s.Remote.Head("main").String()
	o := c.Decision.Offer
	o.Held = v1alpha1.Resources{}
	for _, other := range s.Read().HeldOn("paris", "h100") {
		for name, n := range other.Spec.Resources {
			o.Held[name] = o.Held[name].Add(n)
		}
	}
	delete(o.Held, "nvidia.com/gpu")
	o.Held[v1alpha1.GPU] = v1alpha1.AmountOf(held)
	c.Decision.Offer = o
	return c
}

// gone are the changes by which an intent's contract leaves the tree as if it
// had ended: its spend and all.
func (s *fleet) gone(intent string) ledger.Changes {
	c := s.Contract(intent)
	spend := *s.Read().Spend("vision", "2026-11")
	spend.Entries = slices.Clone(spend.Entries)
	for _, month := range []string{"2026-11"} {
		if m, ok := c.Status.Months[month]; ok {
			spend.Entries = append(spend.Entries, v1alpha1.SpendEntry{
				Contract: c.Metadata.Name, Intent: intent, Provider: c.Spec.Provider, Amount: m.Amount, List: m.List, Currency: c.Spec.Price.Currency,
			})
		}
	}
	ch := ledger.Changes{Contracts: []model.Change{{Before: c}}, Spends: []*v1alpha1.Spend{&spend}}
	st := s.Read().State("vision", intent)
	next := *st
	next.Status.Spent, next.Status.Currency = c.Status.Accrued, c.Spec.Price.Currency
	ch.States = []model.StateChange{{Before: st, After: &next}}
	return ch
}

// In a signed fleet the daemon's name is not enough.
func TestForgedCommit(t *testing.T) {
	signer, public := story.SSHKey(t)
	s := lived(t, "ledger", signer, public)
	now := s.At
	c := s.decided(again(s.Contract("train"), 1, now), 8)
	s.forge(forged{now: now, changes: changed(nil, c)})
	rep := s.verify()
	if len(rep.Violations) == 0 || rep.Violations[0].Rule != "signature" || !strings.Contains(rep.Violations[0].Message, "without a signature by any of writeBack.signers") {
		t.Errorf("a commit in the daemon's name that nobody signed: %v", rep.Violations)
	}
	if one, err := audit.Verify(t.Context(), s.Remote.Objects(), audit.Options{Ledger: s.Remote.Head("ledger"), Inputs: s.Remote.Head("main"), From: s.Remote.Head("ledger")}); err != nil || len(one.Violations) > 0 {
		t.Errorf("a commit that is taken as it stands: %v %v", one.Violations, err)
	}
}

// What others did is undone by the daemon, and only what they did is told.
func TestForeignEditsAreToldOnce(t *testing.T) {
	for _, branch := range []string{"ledger", "main"} {
		s := lived(t, branch, nil, "")
		path := ledger.ContractPath(s.Contract("train"))
		if _, err := s.Remote.Commit(branch, s.Ada(), "Make it cheaper", gitobj.Change{Puts: map[string][]byte{path: []byte("price: 0\n")}}); err != nil {
			t.Fatal(err)
		}
		foreign := s.Remote.Head(branch).String()
		s.Ask("later", 1, "")
		s.Rest()
		rep := s.verify()
		if len(rep.Violations) != 1 || rep.Violations[0].Rule != "foreign" || rep.Violations[0].Commit != foreign || rep.Violations[0].Path != path {
			t.Errorf("%s: %v", branch, rep.Violations)
			continue
		}
		if len(rep.Incidents) != 1 || rep.Violations[0].Undone == "" || len(rep.Open()) != 1 || len(rep.Open(s.Remote.Head("main"))) != 1 {
			t.Errorf("%s: open %v, incidents %+v", branch, rep.Open(), rep.Incidents)
			continue
		}
		in := rep.Incidents[0]
		if in.Commit != foreign || !strings.HasPrefix(in.By, "Ada L.") || in.Subject != "Make it cheaper" || in.Undone != rep.Violations[0].Undone || len(in.Paths) != 1 || in.Paths[0] != path || in.At > in.UndoneAt {
			t.Errorf("%s: incident %+v", branch, in)
		}
		h, err := tree.ParseHash(foreign)
		if err != nil {
			t.Fatal(err)
		}
		if open := rep.Open(h); len(open) > 0 {
			t.Errorf("%s: accepted, and open are %v", branch, open)
		}
	}
}

// What nobody has undone, or not wholly, or not by a key that is trusted, is no
// incident of the past, and the walk stops there.
func TestForeignEditsThatStand(t *testing.T) {
	signer, public := story.SSHKey(t)
	for name, undo := range map[string]func(s *fleet, was []byte, path string){
		"not at all": func(*fleet, []byte, string) {},
		"in part": func(s *fleet, was []byte, path string) {
			s.forge(forged{signer: signer, puts: map[string][]byte{path: was}, trailers: map[string]string{"Plan": "undo"}})
		},
		"by another account": func(s *fleet, was []byte, path string) {
			s.forge(forged{puts: map[string][]byte{path: was}, deletes: []string{"contracts/notes.txt"}, trailers: map[string]string{"Plan": "undo"}})
		},
		"wholly": func(s *fleet, was []byte, path string) {
			s.forge(forged{signer: signer, puts: map[string][]byte{path: was}, deletes: []string{"contracts/notes.txt"}, trailers: map[string]string{"Plan": "undo"}})
		},
	} {
		s := lived(t, "ledger", signer, public)
		path := ledger.ContractPath(s.Contract("train"))
		root, err := s.Remote.Tree(s.Remote.Head("ledger"))
		if err != nil {
			t.Fatal(err)
		}
		was, err := root.ReadFile(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Remote.Commit("ledger", s.Ada(), "Make it cheaper", gitobj.Change{Puts: map[string][]byte{path: []byte("price: 0\n"), "contracts/notes.txt": []byte("x\n")}}); err != nil {
			t.Fatal(err)
		}
		undo(s, was, path)
		undone := name == "wholly"
		for _, all := range []bool{true, false} {
			rep, bad := s.judge(func(o *audit.Options) { o.All = all })
			if len(rep.Incidents) == 1 != undone || len(bad) < 2 || (rep.Violations[0].Undone != "") != undone {
				t.Errorf("%s, all %v: incidents %v, violations %v", name, all, rep.Incidents, bad)
			}
		}
		if w, _, err := audit.Export(t.Context(), s.Remote.Objects(), s.options()); (err == nil) != undone {
			t.Errorf("%s: exported %v, %v", name, w, err)
		}
	}
}

// A retirement that does not carry over what a contract cost.
func TestRetiredWithoutItsSpend(t *testing.T) {
	s := lived(t, "ledger", nil, "")
	s.Push("Done with serve", nil, "intents/vision/serve.yaml")
	s.Rest()
	s.At = s.At.Add(time.Hour)
	ch := s.gone("serve")
	ch.Spends = nil
	s.forge(forged{changes: ch})
	s.finds(t, "spend", "contracts left the tree, and what they cost is not carried over")
}
