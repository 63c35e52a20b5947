package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/cli/examined"
	"github.com/fleetbroker/fleetbroker/internal/cli/retyped"
	"github.com/fleetbroker/fleetbroker/internal/cli/watching"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// ledgerFindings are what can be said of the ledger's history without walking
// it: findings, and notes of what is not protected. of is what was said of the source.
func (g *gathered) ledgerFindings(ctx context.Context, of retyped.Source, witness string) (findings []examined.Trouble, notes []string, err error) {
	if g.src.repo == nil {
		return nil, nil, nil
	}
	head, found := g.src.branchHead(g.fleet.Policy.WriteBack.Branch)
	if !found {
		return g.ledgerGone(witness)
	}
	unknown, shallow := g.src.unknownRevocations()
	if findings = examined.Unknown(g.src.root, unknown); shallow {
		findings, notes = nil, examined.Notes(findings)
	}
	raw, err := g.src.objects.Commit(head)
	if err != nil {
		return nil, nil, err
	}
	c, err := gitobj.ParseCommit(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("read commit %s: %w", head.Short(), err)
	}
	if of.Signed = c.Signature != ""; !of.Signed {
		notes = append(notes, fmt.Sprintf("The ledger's newest commit %s is signed by nobody: everyone who may push can write in the daemon's name. See docs/signing.md.", head.Short()))
	}
	if witness == "" {
		notes = append(notes, "No witness is named (--witness FILE): a ledger set back by force, with refs/fleetbroker/accepted deleted, would not be seen. Make one with `fleetbroker audit export`, and forbid force pushes to the branch. See docs/audit.md.")
		return findings, notes, nil
	}
	w, err := readWitness(witness)
	if err != nil {
		return nil, nil, fmt.Errorf("--witness %s: %w", witness, err)
	}
	stood, err := tree.ParseHash(w.Commit)
	if err != nil {
		return nil, nil, fmt.Errorf("--witness %s: %w", witness, err)
	}
	held, err := audit.Holds(ctx, g.src.objects, head, stood)
	if err != nil || held {
		return findings, notes, err
	}
	return append(findings, examined.SetBack(g.fleet.Policy.WriteBack.Branch, head, stood, of.Verify("--witness", witness))), notes, nil
}

// ledgerGone is a finding where the ledger has no branch, and has had one.
func (g *gathered) ledgerGone(witness string) (findings []examined.Trouble, notes []string, err error) {
	var opts audit.Options
	if err := g.src.stood(&opts, ""); err != nil {
		return nil, nil, err
	}
	if witness != "" {
		if opts.Witness, err = readWitness(witness); err != nil {
			return nil, nil, fmt.Errorf("--witness %s: %w", witness, err)
		}
	}
	branch := g.fleet.Policy.WriteBack.Branch
	none := &noLedgerError{branch, g.src.remote()}
	if err := gone(none, &opts); !errors.Is(err, none) {
		findings = append(findings, examined.Trouble{
			Where: "branch " + branch, Cause: err.Error(),
			Remedy: "fetch it (" + watching.Command(g.src.remote(), branch) + "); where the remote has it no more, stop the daemons and push it back from a clone or a daemon's state directory",
		})
	}
	return findings, nil, nil
}
