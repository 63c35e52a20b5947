package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/proposing"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// remote is the URL of the fleet repo to which a table is proposed.
func (o *pricesOptions) remote() (string, error) {
	url := cmp.Or(o.fleet, o.dir)
	switch {
	case !isURL(url):
		return "", hinted(usagef("--propose needs the fleet repo by its URL"), "--fleet https://git.example.org/acme/fleet.git, with --git-user and --git-password-file")
	case o.file != "":
		return "", usagef("--file writes the table here, --propose to a branch of the fleet repo: name one of the two")
	}
	return url, nil
}

// propose puts a table onto a branch of the fleet repo, as prices/NAME.yaml, with what was
// not understood in the pull request.
func (o *pricesOptions) propose(ctx context.Context, url string, table *v1alpha1.PriceTable, notes []string) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "# Imported by `fleetbroker prices import %s`; the next import proposes what changed.\n", o.kind)
	if err := printYAML(&text, table); err != nil {
		return err
	}
	remote, err := gitrepo.Dial(url, o.auth)
	if err != nil {
		return err
	}
	f, err := o.forge.open(url)
	if err != nil {
		return err
	}
	change := proposing.Prices(table, text.Bytes(), notes)
	out, err := proposing.Propose(ctx, remote, f, o.branch, gitrepo.Identity{Name: o.author.Name, Email: o.author.Email}, o.streams.Now(), change)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(o.streams.Out, strings.TrimSuffix(out.Text(change.Path), "\n")+"\n")
	return err
}
