package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	fleetrepo "github.com/fleetbroker/fleetbroker/fleet-repo-template"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/manifests"
	"github.com/fleetbroker/fleetbroker/schemas"
)

type initOptions struct {
	streams Streams
	dir     string
	forge   string
	output  string
	// keysDir is where private keys go, signingKey and policyKey are key files to
	// use in place of new ones.
	keysDir, signingKey, policyKey string
}

func newCmdInit(s Streams) *cobra.Command {
	o := initOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Lay down a fleet repo to start from",
		Long: `Lay down a fleet repo in DIR: sample inputs that validate and plan, CI for the
forge, schemas for the editor, manifests to install daemon and agents, and the
install guide and runbook under docs/. DIR must be empty or not exist; a .git
directory in it is fine.

Beside DIR, in DIR.keys, it writes two signing keys and the trust root that names
them: policy signs what people change of the fleet's rights, ledger the daemon's
commits. Neither belongs into a repository.`,
		Example: `  fleetbroker init fleet
  fleetbroker init fleet --forge gitlab
  fleetbroker init fleet --keys-dir ~/acme-keys --policy-key ~/.ssh/id_ed25519.pub`,
		Args: exactly(1, "one argument: the directory to make"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.dir = args[0]
			if err := oneOf("forge", o.forge, "github", "gitlab", "gitea"); err != nil {
				return err
			}
			return initRun(o)
		},
	}
	cmd.Flags().StringVar(&o.forge, "forge", "github", "whose CI to lay down: github, gitlab or gitea")
	cmd.Flags().StringVar(&o.keysDir, "keys-dir", "", "directory for private keys and trust root, outside every repository (default: DIR.keys)")
	cmd.Flags().StringVar(&o.signingKey, "signing-key", "", "OpenSSH key of the daemon, private or .pub (default: a new one)")
	cmd.Flags().StringVar(&o.policyKey, "policy-key", "", "OpenSSH key of the platform team, private or .pub (default: a new one)")
	outcomeFlag(cmd, &o.output)
	_ = cmd.RegisterFlagCompletionFunc("forge", cobra.FixedCompletions([]string{"github", "gitlab", "gitea"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func initRun(o initOptions) error {
	if err := emptyDir(o.dir); err != nil {
		return err
	}
	keys, err := newKeyring(o)
	if err != nil {
		return err
	}
	files, err := templateFiles(o.forge)
	if err != nil {
		return err
	}
	pinProgram(files)
	nameFleet(files, keys.id)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		to := filepath.Join(o.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a repo is for its readers
			return fmt.Errorf("make the fleet repo: %w", err)
		}
		if err := os.WriteFile(to, files[name], 0o644); err != nil { //nolint:gosec // a repo is for its readers
			return fmt.Errorf("make the fleet repo: %w", err)
		}
	}
	if err := keys.write(); err != nil {
		return err
	}
	sign := keys.signLine(o.dir)
	text := fmt.Sprintf(`made a fleet repo in %s (%s, CI for %s), keys and trust root in %s
next: cd %s
      fleetbroker validate
      fleetbroker plan
then: docs/install.md
`, o.dir, tables.Count(len(files), "file"), o.forge, keys.dir, o.dir)
	if sign != "" {
		text += "sign: " + sign + "\n"
	}
	return printOutcome(o.streams.Out, o.output, struct {
		Dir       string   `json:"dir"`
		Forge     string   `json:"forge"`
		Files     []string `json:"files"`
		KeysDir   string   `json:"keysDir"`
		TrustRoot string   `json:"trustRoot"`
		Sign      string   `json:"sign,omitempty"`
	}{o.dir, o.forge, names, keys.dir, filepath.Join(keys.dir, rootFile), sign}, text)
}

// nameFleet puts the fleet's id into the names that the install bases give in a cluster.
func nameFleet(files map[string][]byte, id string) {
	for file, text := range files {
		if strings.HasPrefix(file, "install/") {
			files[file] = manifests.NameInstall(id, text)
		}
	}
}

// release is a version that others can install.
var release = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`)

// pinProgram has CI install this very version, where it is one that was released.
func pinProgram(files map[string][]byte) {
	info, ok := debug.ReadBuildInfo()
	if !ok || !release.MatchString(info.Main.Version) || info.Main.Sum == "" {
		return
	}
	for name := range fleetrepo.Forges {
		for file, content := range files {
			if top, _, _ := strings.Cut(file, "/"); top == name {
				text := strings.ReplaceAll(string(content), "FLEETBROKER_VERSION: v0.1.0\n", "FLEETBROKER_VERSION: "+info.Main.Version+"\n")
				files[file] = []byte(strings.ReplaceAll(text, "FLEETBROKER_SUM: \"\"\n", "FLEETBROKER_SUM: "+info.Main.Sum+"\n"))
			}
		}
	}
}

// emptyDir is an error when there is anything in dir but a git repository
// without files.
func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the fleet repo: %w", err)
	}
	for _, e := range entries {
		if e.Name() != ".git" {
			return hinted(fmt.Errorf("%s is not empty: it has %s", dir, e.Name()), "name a new directory; init changes nothing that exists")
		}
	}
	return nil
}

// schemaDir is where the editor's schemas lie in a fleet repo.
const schemaDir = ".schemas"

// templateFiles is the fleet repo for a forge, by path.
func templateFiles(forge string) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := fs.WalkDir(fleetrepo.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		top, _, _ := strings.Cut(name, "/")
		if only, ok := fleetrepo.Forges[top]; ok && only != forge {
			return nil
		}
		out[name], err = fleetrepo.Files.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	err = fs.WalkDir(schemas.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".json" {
			return err
		}
		out[path.Join(schemaDir, path.Base(name))], err = schemas.Files.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the schemas: %w", err)
	}
	return out, nil
}
