package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/cli/proposing"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
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
	name := table.Metadata.Name
	change := proposing.Change{
		Path: "prices/" + name + ".yaml", Content: text.Bytes(), Prefix: "prices/" + name,
		Title: "Prices of " + name, Body: tables.Count(len(table.Spec.Prices), "price") + ", in " + table.Spec.Currency + ", as they are published now.\n",
	}
	if len(notes) > 0 {
		change.Body += "\nLeft out or ambiguous:\n\n"
		for _, n := range notes {
			change.Body += "- " + escape.Markdown(n) + "\n"
		}
	}
	author := o.author
	out, err := proposing.Propose(ctx, remote, f, o.branch, gitrepo.Identity{Name: author.Name, Email: author.Email}, o.streams.Now(), change)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(o.streams.Out, strings.TrimSuffix(out.Text(change.Path), "\n")+"\n")
	return err
}
