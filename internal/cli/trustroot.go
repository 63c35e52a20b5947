package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// rootFlags name the trust root of commands that read a fleet repo.
type rootFlags struct{ file string }

func (f *rootFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.file, "trust-root", "", "trust root file: whose signatures count, whatever the repository says (default: FLEETBROKER_TRUST_ROOT)")
	fs.StringVar(&f.file, "signers", "", "the same as --trust-root")
}

// read is the root, nil without a file.
func (f *rootFlags) read() (*trust.Root, error) {
	file := cmp.Or(f.file, os.Getenv("FLEETBROKER_TRUST_ROOT"))
	if file == "" {
		return nil, nil
	}
	r, err := trust.Read(file)
	if err != nil {
		return nil, hinted(err, "the file is the one that `fleetbroker init` wrote; see docs/signing.md")
	}
	return r, nil
}

// daemonRoot names the trust root of a daemon.
type daemonRoot struct {
	file     string
	unsigned bool
}

func (f *daemonRoot) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.file, "trust-root", "", "trust root file: whose signatures count, whatever the repository says")
	fs.BoolVar(&f.unsigned, "unsigned", false, "ask for no signatures: everyone who may push gives rights and writes the ledger")
}

// asked is an error for a program that writes the ledger at url and knows neither
// whose signatures count nor that none are asked for. A repository of this machine
// is its owner's, unless a daemon keeps it or its ledger is signed: see askedBy.
func (f *daemonRoot) asked(url string, daemon bool) error {
	if f.file != "" || f.unsigned || url == "" || !daemon && (!isURL(url) || strings.HasPrefix(url, "file://")) {
		return nil
	}
	return hinted(errors.New("nothing says whose signatures count, so whoever may push would give rights and write the ledger"), rootHints...)
}

// rootHints are the ways to say whose signatures count.
var rootHints = []string{
	"--trust-root FILE    the trust-root.yaml that `fleetbroker init` wrote, and --signing-key for the daemon's key (docs/signing.md)",
	"--unsigned           ask for no signatures: for a trial, and where the daemon alone can push",
}

// askedBy is an error where the ledger was written under a trust root and no flag
// says whose signatures count: an unsigned commit on it would be one of another hand
// for every daemon and auditor.
// A ledger whose keys only fleet.yaml names carries no fleet id, and is not seen here.
func askedBy(ctx context.Context, repo *gitrepo.Repo) error {
	heads, err := repo.Fetch(ctx)
	var rewritten *gitrepo.ErrRewritten
	if err != nil && !errors.As(err, &rewritten) {
		return fmt.Errorf("fetch the fleet repo: %w", err)
	}
	at, err := repo.UnderRoot(ctx, heads.Ledger.Commit.Hash)
	if err != nil || at.IsZero() {
		return err
	}
	return hinted(fmt.Errorf("the ledger is signed (commit %s), and nothing says whose signatures count: what is written without would not count", at.Short()), rootHints...)
}

// read is the daemon's root, nil where no flag says anything. It tells the log.
func (f *daemonRoot) read(log *slog.Logger) (*trust.Root, error) {
	if f.unsigned && f.file != "" {
		return nil, usagef("--trust-root and --unsigned contradict each other: give one of them (a trust root file may itself say unsigned: true)")
	}
	root := trust.NoRoot()
	if f.file != "" {
		var err error
		if root, err = trust.Read(f.file); err != nil {
			return nil, hinted(err, "the file is the one that `fleetbroker init` wrote; see docs/signing.md")
		}
	} else if !f.unsigned {
		return nil, nil
	}
	if root.Signed() {
		log.Info("signatures are held to the trust root", "root", root.Name, "fleet", root.FleetID, "keys", root.Digest())
	} else {
		log.Warn("this fleet is unsigned: everyone who may push to the repository gives rights and writes the ledger", "fleet", root.FleetID)
	}
	return root, nil
}
