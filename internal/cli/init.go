package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	fleetrepo "github.com/fleetbroker/fleetbroker/fleet-repo-template"
	"github.com/fleetbroker/fleetbroker/schemas"
)

type initOptions struct {
	streams Streams
	dir     string
	forge   string
	output  string
}

func newCmdInit(s Streams) *cobra.Command {
	o := initOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Lay down a fleet repo to start from",
		Long: `Lay down a fleet repo in DIR: sample inputs that validate and plan, CI for the
forge, schemas for the editor, manifests to install daemon and agents, and the
install guide and runbook under docs/. DIR must be empty or not exist; a .git
directory in it is fine.`,
		Example: `  fleetbroker init fleet
  fleetbroker init fleet --forge gitlab`,
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
	outcomeFlag(cmd, &o.output)
	_ = cmd.RegisterFlagCompletionFunc("forge", cobra.FixedCompletions([]string{"github", "gitlab", "gitea"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func initRun(o initOptions) error {
	if err := emptyDir(o.dir); err != nil {
		return err
	}
	files, err := templateFiles(o.forge)
	if err != nil {
		return err
	}
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
	return printOutcome(o.streams.Out, o.output, struct {
		Dir   string   `json:"dir"`
		Forge string   `json:"forge"`
		Files []string `json:"files"`
	}{o.dir, o.forge, names}, fmt.Sprintf(`made a fleet repo in %s (%s, CI for %s)
next: cd %s
      fleetbroker validate
      fleetbroker plan
then: docs/install.md
`, o.dir, count(len(files), "file"), o.forge, o.dir))
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
