package review

import (
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/planner"
	"github.com/fleetbroker/fleetbroker/internal/planner/report"
)

// Unverified is a path of which a commit says what is not acted on.
type Unverified struct {
	Path string
	// Commit that changed it, and who its author claims to be.
	Commit tree.Hash
	Author string
	// Why it does not count.
	Why string
	// Unapproved: it is signed by one who may ask, and waits for an approver.
	Unapproved bool
}

// unsigned counts the findings that only other commits can mend; one that
// waits for an approver is mended by how the pull request is merged.
func unsigned(findings []Unverified) int {
	n := 0
	for _, f := range findings {
		if !f.Unapproved {
			n++
		}
	}
	return n
}

// commits counts those that findings are of.
func commits(findings []Unverified) int {
	of := map[tree.Hash]bool{}
	for _, f := range findings {
		of[f.Commit] = true
	}
	return len(of)
}

// writeUnverified names the commits that are not acted on, whose they are, and
// what would be planned if they were.
func writeUnverified(b *strings.Builder, in Input, whole *planner.Plan) {
	if len(in.Unverified) == 0 {
		if in.Signed && in.Source != "" {
			b.WriteString("\nIts head is signed as the source's entry asks for. So must the branch's head be after the merge: merge by fast-forward, or with a commit that a signer of the source signs.\n")
		} else if in.Signed && in.Changes.Inputs() {
			b.WriteString("\nEach of its commits is verified as it is. A squash or rebase makes others: merge with a merge commit.\n")
		}
		return
	}
	b.WriteString("\n**Not acted on until verified**\n\n| file | commit | by | why |\n|-|-|-|-|\n")
	const most = 20
	for i, f := range in.Unverified {
		if i == most {
			fmt.Fprintf(b, "\nand %s more.\n", count(len(in.Unverified)-most, "file", "files"))
			break
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", escape.Code(f.Path), f.Commit.Short(), escape.Markdown(f.Author), escape.Markdown(f.Why))
	}
	remedy := "Have an authorised account sign the commits (`git rebase --exec 'git commit --amend --no-edit -S'`)."
	if unsigned(in.Unverified) == 0 {
		remedy = "Let an approver merge it with a signed merge commit (`git merge --no-ff -S`)."
	}
	if in.Source != "" {
		remedy = "Let a signer of the source put a signed commit on top (`git commit -S --allow-empty`): it vouches for what is below."
	}
	decided := "the same is planned"
	if len(whole.Intents) > 0 {
		decided = fmt.Sprintf("%s (%s %s/h)", report.Counts(whole, report.Meta{}), report.Signed(whole.HourlyAfter.Sub(whole.HourlyBefore)), whole.Currency)
	}
	fmt.Fprintf(b, "\nUntil then what is in force stays so. Once verified: %s. %s\n", decided, remedy)
	for _, d := range whole.Intents {
		if d.Action == planner.Refuse || d.Action == planner.Frozen {
			fmt.Fprintf(b, "- %s of %s/%s: %s\n", d.Action, escape.Markdown(d.Tenant), escape.Markdown(d.Name), escape.Markdown(d.Reason))
		}
	}
}

// Unsigned is the comment of a pull request whose merge made a commit that is
// not acted on: what it is about, why, and how to put it in force. told is the
// rest of the comment, "" for none.
func Unsigned(told string, commit string, findings []Unverified) string {
	var b strings.Builder
	if told == "" {
		told = ReservedMarker + "\n"
	}
	b.WriteString(told)
	fmt.Fprintf(&b, "\n**Not acted on:** the merge made commit %s, which is not signed by an account that may change these files. What was in force before stays in force.\n\n| file | why |\n|-|-|\n", short(commit))
	const most = 20
	for i, f := range findings {
		if i == most {
			fmt.Fprintf(&b, "\nand %s more.\n", count(len(findings)-most, "file", "files"))
			break
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", escape.Code(f.Path), escape.Markdown(f.Why))
	}
	fmt.Fprintf(&b, "\n%s\n", Remedy(short(commit)))
	return b.String()
}

// Remedy puts a commit in force that a squash, a rebase or an edit on the
// forge's page made without a signature.
func Remedy(commit string) string {
	return "A squash, a rebase and an edit on the forge's page make a new commit, without the signature. An account that may change the files signs it again: " +
		"`git pull && git revert -S --no-edit " + commit + " && git revert -S --no-edit HEAD && git push`. Next time merge with a merge commit."
}
