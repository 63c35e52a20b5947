package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/newfleet"
)

type initOptions struct {
	streams Streams
	dir     string
	update  bool
	forge   string
	output  string
	from    string // where releases are
	keys    newfleet.KeyOptions
}

func newCmdInit(s Streams) *cobra.Command {
	o := initOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Create a fleet repo to start from, or bring one to this version",
		Long: `Create a fleet repo in DIR: sample inputs that validate and plan, CI for the
forge, schemas for the editor, manifests to install daemon and agents, and the
install guide and runbook under docs/. DIR must not exist, or be empty but for
.git, a README, a licence and the like, which stay as they are: what the template has
for such a file is written next to it as NAME.new.

Next to DIR, in DIR.keys, it writes two signing keys and the trust root that names
them: policy signs what people change of the fleet's rights, ledger the daemon's
commits. Neither belongs into a repository.

Its CI installs this very version: from the releases that --releases names, else by
building it with Go, which takes minutes each time. --releases says where the images of the
install bases and of the Helm chart are too: by #REGISTRY after the URL, else, for releases
on github.com, ghcr.io/OWNER. Where it does not, they are a sample to fill in.

With --update the template's files in DIR, by default the working directory (documents,
install bases, CI, schemas), are brought to this program's version, up or down, by
.fleetbroker/template.lock. Inputs are not touched. What was edited stays; a new version
is merged into it, line by line, and where both changed the same lines it is written next
to it as NAME.new, to be merged by hand and deleted. What was deleted stays deleted.`,
		Example: `  fleetbroker init fleet
  fleetbroker init fleet --forge gitlab --releases https://github.com/acme/fleetbroker/releases/download
  fleetbroker init fleet --releases 'https://dl.example.org/fleetbroker#registry.example.org/tools'
  fleetbroker init fleet --keys-dir ~/acme-keys --policy-key ~/.ssh/id_ed25519.pub
  fleetbroker init --update`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.update && len(args) == 0 {
				return nil
			}
			return exactly(1, "one argument: the directory to make")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			o.dir, o.keys.Repo = args[0], args[0]
			if err := oneOf("forge", o.forge, "github", "gitlab", "gitea"); err != nil {
				return err
			}
			if !o.update {
				return initRun(o)
			}
			for _, name := range []string{"forge", "keys-dir", "signing-key", "policy-key"} {
				if cmd.Flags().Changed(name) {
					return usagef("--%s is for a new fleet repo: --update keeps what the repo was made with", name)
				}
			}
			return initUpdate(o)
		},
	}
	cmd.Flags().BoolVar(&o.update, "update", false, "bring the template's files in DIR to this version, and keep what was edited")
	cmd.Flags().StringVar(&o.forge, "forge", "github", "whose CI to write: github, gitlab or gitea")
	cmd.Flags().StringVar(&o.from, "releases", "", "where releases are, as URL or URL#REGISTRY: CI installs this program's version from there (default: as this program was built)")
	cmd.Flags().StringVar(&o.keys.Dir, "keys-dir", "", "directory for private keys and trust root, outside every repository (default: DIR.keys)")
	cmd.Flags().StringVar(&o.keys.Signing, "signing-key", "", "OpenSSH key of the daemon, private or .pub (default: a new one)")
	cmd.Flags().StringVar(&o.keys.Policy, "policy-key", "", "OpenSSH key of the platform team, private or .pub (default: a new one)")
	outcomeFlag(cmd, &o.output)
	_ = cmd.RegisterFlagCompletionFunc("forge", cobra.FixedCompletions([]string{"github", "gitlab", "gitea"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func initRun(o initOptions) error {
	if err := newfleet.Vacant(o.dir); err != nil {
		return err
	}
	pin, err := newfleet.PinOf(o.from)
	if err != nil {
		return err
	}
	keys, err := newfleet.NewKeyring(o.keys)
	if err != nil {
		return err
	}
	out, err := newfleet.Make(o.dir, o.forge, keys.ID, pin)
	if err != nil {
		return err
	}
	if err := keys.Write(); err != nil {
		return err
	}
	sign := keys.SignLine(o.dir)
	enter := "cd " + o.dir + "\n      "
	if filepath.Clean(o.dir) == "." {
		enter = ""
	}
	text := fmt.Sprintf(`made a fleet repo in %s (%s, CI for %s), keys and trust root in %s
next: %sfleetbroker validate
      fleetbroker plan
then: docs/install.md
ci:   %s
`, o.dir, tables.Count(len(out.Written)+len(out.Conflicts), "file"), o.forge, keys.Dir, enter, pin.Text())
	text += out.KeptText()
	if sign != "" {
		text += "sign: " + sign + "\n"
	}
	return printOutcome(o.streams.Out, o.output, struct {
		Dir       string   `json:"dir"`
		Forge     string   `json:"forge"`
		Files     []string `json:"files"`
		Kept      []string `json:"kept,omitempty"`
		KeysDir   string   `json:"keysDir"`
		TrustRoot string   `json:"trustRoot"`
		Sign      string   `json:"sign,omitempty"`
	}{o.dir, o.forge, out.Written, out.Conflicts, keys.Dir, filepath.Join(keys.Dir, newfleet.RootFile), sign}, text)
}

func initUpdate(o initOptions) error {
	u, err := newfleet.Update(o.dir, o.from)
	if err != nil {
		return err
	}
	from := u.From
	if from == "" {
		from = "an unknown version"
	}
	return printOutcome(o.streams.Out, o.output, u, fmt.Sprintf("updated the fleet repo in %s from %s to %s: %s\n%s", o.dir, from, u.To, u.Counts(), u.KeptText()))
}
