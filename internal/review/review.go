package review

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
)

// Verdict is what a check says.
type Verdict string

// The verdicts.
const (
	Passed Verdict = "passed"
	Failed Verdict = "failed"
)

// Side is a fleet as read and the world made of it.
type Side struct {
	Fleet *fleet.Fleet
	World planner.World
}

// Input is a pull request as it was read.
type Input struct {
	// Head is the pull request's commit, Base the inputs' it was merged with.
	Head, Base tree.Hash
	// Branch of the base.
	Branch string
	// Source is the tenant's repository that the pull request is of, "" for the fleet
	// repo: paths are shown as they are there.
	Source    string
	Changes   Changes
	Conflicts []string
	// Before is the base. After has the pull request's work and the base's
	// policy. Own has its policy too; nil when it changes none.
	Before, After Side
	Own           *Side
	// Signed: only what is verified is acted on. Unverified is what of the pull
	// request would not be; Before and After are without it, OnceVerified is
	// After with it (nil when there is none).
	Signed bool
	// Signatures is what signatures are held to, in a line; "" leaves it out.
	Signatures   string
	Unverified   []Unverified
	OnceVerified *Side
}

// whole is what is asked for, whether it is verified or not.
func (in Input) whole() Side {
	if in.OnceVerified != nil {
		return *in.OnceVerified
	}
	return in.After
}

// Result is what is said about a pull request.
type Result struct {
	Verdict Verdict
	// Summary is one line of plain text.
	Summary string
	// Comment is markdown and begins with report.Marker.
	Comment string
	// Lines are problems, each at its line.
	Lines []report.Problem
	// Digest of what is decided, "sha256:…"; time and wording leave it as it is.
	Digest string
	// Wanted are the intents that the pull request adds or changes.
	Wanted []Wanted
}

// Wanted is one version of an intent.
type Wanted struct {
	Tenant, Name, Path, Digest string
}

// Refusal is the result for a pull request of which no plan is made, and why.
func Refusal(head tree.Hash, why string) Result {
	return Result{
		Verdict: Failed, Summary: "no plan: " + oneLine(why), Digest: digest("refusal", why),
		Comment: fmt.Sprintf("%s\n**No plan was made for %s.**\n\n%s\n", report.Marker, head.Short(), escape.Markdown(why)),
	}
}

// Of reviews a pull request.
func Of(in Input) Result {
	if len(in.Conflicts) > 0 {
		return Refusal(in.Head, fmt.Sprintf("%s changed since on %s as well (%s): merge or rebase, and the plan follows", count(len(in.Conflicts), "file was", "files were"), in.Branch, some(in.Conflicts)))
	}
	before, after := planner.Decide(in.Before.World), planner.Decide(in.After.World)
	since := report.Since(before, after)
	since.Notes = added(before.Notes, after.Notes)
	whole, wholeSince := after, since
	if in.OnceVerified != nil {
		whole = planner.Decide(in.OnceVerified.World)
		wholeSince = report.Since(before, whole)
	}
	r := Result{Verdict: Passed, Lines: problems(in), Wanted: wanted(in)}
	heldBack := whole.HeldBack != "" && before.HeldBack == ""
	if len(r.Lines) > 0 || refuses(wholeSince) || heldBack || unsigned(in.Unverified) > 0 {
		r.Verdict = Failed
	}
	meta := report.Meta{Fleet: in.After.Fleet.Name, Branch: in.Branch, Errors: unread(in, r.Lines)}
	r.Digest = digestOf(in, wholeSince, r.Lines)
	since, wholeSince = in.own(since, before, after), in.own(wholeSince, before, whole)
	r.Summary = summary(in, since, meta, r, heldBack)
	r.Comment = comment(in, before, after, since, wholeSince, meta, r)
	if in.Source != "" {
		at := sourced.Dir(in.Source) + "/"
		r.Comment = strings.ReplaceAll(r.Comment, at, "")
		for i := range r.Lines {
			r.Lines[i].File = strings.TrimPrefix(r.Lines[i].File, at)
		}
	}
	return r
}

// refuses reports whether a plan refuses an intent.
func refuses(p *planner.Plan) bool {
	return slices.ContainsFunc(p.Intents, func(d *planner.Decision) bool { return d.Action == planner.Refuse || d.Action == planner.Frozen })
}

// summary is a status' description: what the verdict is bound to stands in it.
func summary(in Input, since *planner.Plan, m report.Meta, r Result, heldBack bool) string {
	said := "changes nothing that is planned"
	switch {
	case heldBack:
		said = "ends held back, see the comment"
	case len(since.Intents)+len(m.Errors) > 0:
		said = report.Counts(since, m)
		if diff := since.HourlyAfter.Sub(since.HourlyBefore); !diff.IsZero() {
			said += fmt.Sprintf(" (%s %s/h)", report.Signed(diff), since.Currency)
		}
	}
	if n := commits(in.Unverified); n > 0 {
		said += ", " + count(n, "commit", "commits") + " not verified"
	}
	if n := len(r.Lines); n > 0 {
		said += ", " + count(n, "problem", "problems")
	}
	return fmt.Sprintf("%s; at base %s, plan %s", said, in.Base.Short(), strings.TrimPrefix(r.Digest, "sha256:")[:7])
}

// wanted are the intents of the changed files, as they would be.
func wanted(in Input) []Wanted {
	was := map[string]string{}
	for _, it := range in.Before.Fleet.Intents {
		was[it.Metadata.Namespace+"/"+it.Metadata.Name] = it.Digest
	}
	var out []Wanted
	for _, it := range in.whole().Fleet.Intents {
		if was[it.Metadata.Namespace+"/"+it.Metadata.Name] != it.Digest {
			out = append(out, Wanted{Tenant: it.Metadata.Namespace, Name: it.Metadata.Name, Path: it.Path, Digest: it.Digest})
		}
	}
	return out
}

// digestOf covers what is decided and what is wrong, not when nor how it is
// worded.
func digestOf(in Input, since *planner.Plan, lines []report.Problem) string {
	parts := []any{in.Changes.Policy}
	for _, d := range since.Intents {
		parts = append(parts, d.Tenant, d.Name, d.Action, d.Code, d.HourlyBefore.String(), d.HourlyAfter.String())
		for i := range d.Contracts {
			c := &d.Contracts[i]
			parts = append(parts, c.Action, c.Provider, c.Flavor, c.From, c.Consumer, c.Hourly.String(), c.Resources)
		}
	}
	for _, l := range lines {
		parts = append(parts, l)
	}
	for _, f := range in.Unverified {
		parts = append(parts, f.Path, f.Commit, f.Why)
	}
	return digest(parts...)
}

func digest(parts ...any) string {
	b, err := json.Marshal(parts)
	if err != nil {
		panic(err) // they are plain values
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func added(before, after []string) []string {
	known := map[string]bool{}
	for _, s := range before {
		known[s] = true
	}
	var out []string
	for _, s := range after {
		if !known[s] {
			out = append(out, s)
		}
	}
	return out
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// some names the first few of a list.
func some(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
