package flagfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	yaml "go.yaml.in/yaml/v3"

	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
)

// Flag names the file.
const Flag = "config"

// maxSize bounds the file, in bytes.
const maxSize = 1 << 20

// Prefix begins the names of variables of the environment that set a flag:
// FLEETBROKER_RUN_STATE_DIR sets --state-dir. Kubernetes gives pods variables that begin with
// the names of Services, FLEETBROKER_PORT among them, so that the prefix is longer.
const Prefix = "FLEETBROKER_RUN_"

// Register adds the flag to a command, whose flags are read from the environment and from
// the file before it runs.
func Register(cmd *cobra.Command) {
	file := cmd.Flags().String(Flag, "", "YAML file with flags of this command: names without dashes, and their values; the command line wins, and then variables of the environment, "+Prefix+"STATE_DIR for --state-dir")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := Environment(os.Environ(), cmd.Flags()); err != nil {
			return err
		}
		if *file != "" {
			if err := Read(*file, cmd.Flags()); err != nil {
				return err
			}
		}
		return run(cmd, args)
	}
}

// Environment sets the flags that variables ("NAME=value") name and that are not set yet. A
// flag that takes several values takes them between commas.
func Environment(variables []string, fs *pflag.FlagSet) error {
	given := map[string]bool{}
	fs.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		flag, ours := strings.CutPrefix(name, Prefix)
		if !ours {
			continue
		}
		f, err := known(fs, strings.ToLower(strings.ReplaceAll(flag, "_", "-")))
		if err != nil {
			return fmt.Errorf("environment variable %s: %w", name, err)
		}
		if given[f.Name] {
			continue
		}
		if err := fs.Set(f.Name, value); err != nil {
			return fmt.Errorf("environment variable %s: %w", name, err)
		}
	}
	return nil
}

// Read sets the flags that a file names and that are not set yet. An error names the file's
// line.
func Read(file string, fs *pflag.FlagSet) error {
	root, err := parse(file)
	if err != nil {
		return fmt.Errorf("read flags from %s: %w", file, err)
	}
	if root == nil {
		return nil
	}
	given := map[string]bool{}
	fs.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if first, twice := seen[key.Value]; twice {
			return fmt.Errorf("%s:%d: flag %q is there twice, first on line %d; remove one", file, key.Line, key.Value, first)
		}
		seen[key.Value] = key.Line
		f, err := known(fs, key.Value)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", file, key.Line, err)
		}
		values, err := valuesOf(f, value)
		if err != nil {
			return fmt.Errorf("%s:%d: flag %q: %w", file, value.Line, key.Value, err)
		}
		if given[f.Name] {
			continue
		}
		for _, v := range values {
			if err := fs.Set(f.Name, v); err != nil {
				return fmt.Errorf("%s:%d: %w", file, value.Line, err)
			}
		}
	}
	return nil
}

// parse gives the file's mapping, nil for a file without content.
func parse(file string) (*yaml.Node, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxSize {
		return nil, fmt.Errorf("it has more than %d bytes", maxSize)
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	var root, more yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line %d: a second document; write one mapping", more.Line)
	}
	switch node := root.Content[0]; {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		return nil, nil
	case node.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("line %d: not a mapping; write NAME: VALUE lines, with the flags' names without dashes", node.Line)
	default:
		return node, nil
	}
}

// known is the flag of a name.
func known(fs *pflag.FlagSet, name string) (*pflag.Flag, error) {
	if f := fs.Lookup(name); f != nil && name != Flag && name != "help" {
		return f, nil
	}
	if bare := strings.TrimLeft(name, "-"); bare != name && fs.Lookup(bare) != nil {
		return nil, fmt.Errorf("%q: write the flag without dashes, %s", name, bare)
	}
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != Flag && f.Name != "help" {
			names = append(names, f.Name)
		}
	})
	if near := nearest.Of(name, names); near != "" {
		return nil, fmt.Errorf("%q is no flag that can be set here; did you mean %s?", name, near)
	}
	return nil, fmt.Errorf("%q is no flag that can be set here; --help lists them", name)
}

// valuesOf are the values of a flag, one for each time that it would be given.
func valuesOf(f *pflag.Flag, n *yaml.Node) ([]string, error) {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return nil, errors.New("it has no value; write one, or remove the line")
	case n.Kind == yaml.ScalarNode:
		return []string{n.Value}, nil
	case n.Kind != yaml.SequenceNode:
		return nil, errors.New("its value is neither a scalar nor a list; aliases and mappings are not taken")
	}
	if _, many := f.Value.(pflag.SliceValue); !many {
		return nil, errors.New("it takes one value, not a list")
	}
	var out []string
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return nil, fmt.Errorf("line %d: not a value", item.Line)
		}
		out = append(out, item.Value)
	}
	return out, nil
}
