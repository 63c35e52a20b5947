package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetbroker/fleetbroker/internal/cli/completing"
)

// each visits every command of the tree; it has more than twenty.
func each(t *testing.T, visit func(*cobra.Command)) {
	t.Helper()
	n := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		n++
		visit(c)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(NewRoot(Streams{}))
	if n < 20 {
		t.Errorf("only %d commands were looked at", n)
	}
}

// A command that reads a fleet repo takes it by -C, whether or not it takes it as an
// argument too. Those that work for the daemon name the remote by --repo.
func TestEveryCommandThatReadsAFleetTakesC(t *testing.T) {
	seen := 0
	each(t, func(c *cobra.Command) {
		flags := c.NonInheritedFlags()
		reads := strings.Contains(c.Use, "DIR|URL") || flags.Lookup("branch") != nil || flags.Lookup("market") != nil && flags.Lookup("repo") == nil
		if !reads {
			return
		}
		seen++
		if f := flags.ShorthandLookup("C"); f == nil || f.Name != "dir" {
			t.Errorf("%s reads a fleet repo and has no -C", c.CommandPath())
		}
	})
	if seen < 12 {
		t.Errorf("only %d commands read a fleet repo", seen)
	}
}

// Whatever a flag takes, the shell completes it: a set, names, paths, or nothing, which
// is said too.
func TestEveryFlagHasACompletion(t *testing.T) {
	if missing := completing.Missing(NewRoot(Streams{})); len(missing) > 0 {
		t.Errorf("declare in internal/cli/completing what these take:\n%s", strings.Join(missing, "\n"))
	}
}

// closedText finds a list of values in a flag's help: "text, json or yaml".
var closedText = regexp.MustCompile(`^(?:[a-z][a-z ]*: )?((?:[A-Za-z][A-Za-z-]*, )+[A-Za-z][A-Za-z-]*(?: or [A-Za-z][A-Za-z-]*)?)$`)

// A flag whose help lists its values completes them, and one that refuses others does.
func TestListedValuesAreCompleted(t *testing.T) {
	seen := 0
	each(t, func(c *cobra.Command) {
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			m := closedText.FindStringSubmatch(strings.TrimSpace(strings.Split(f.Usage, "(")[0]))
			if m == nil || f.Value.Type() == "bool" {
				return
			}
			fn, has := c.GetFlagCompletionFunc(f.Name)
			if !has {
				t.Errorf("%s --%s lists its values and does not complete them: %s", c.CommandPath(), f.Name, f.Usage)
				return
			}
			seen++
			offered, _ := fn(c, nil, "")
			for _, word := range regexp.MustCompile(`, | or `).Split(m[1], -1) {
				if word = strings.TrimPrefix(word, "or "); !slices.ContainsFunc(offered, func(o string) bool { return o == word }) {
					t.Errorf("%s --%s: its help lists %q, and %q are completed", c.CommandPath(), f.Name, word, offered)
				}
			}
		})
	})
	if seen < 10 {
		t.Errorf("only %d flags list their values", seen)
	}
}

// What is between backticks in a flag's usage is shown as its type, and elsewhere a
// terminal shows the backtick itself: help has none.
func TestHelpHasNoBackquotes(t *testing.T) {
	flags := 0
	each(t, func(c *cobra.Command) {
		if c.Name() == "help" || strings.HasPrefix(c.CommandPath(), "fleetbroker completion") {
			return // cobra's own
		}
		for what, text := range map[string]string{"use": c.Use, "short": c.Short, "long": c.Long, "example": c.Example} {
			if strings.Contains(text, "`") {
				t.Errorf("%s: its %s text has a backtick", c.CommandPath(), what)
			}
			if strings.TrimSpace(text) != text && what != "example" {
				t.Errorf("%s: its %s text begins or ends with space", c.CommandPath(), what)
			}
		}
		if c.Short == "" {
			t.Errorf("%s has no short help", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			flags++
			if strings.Contains(f.Usage, "`") || f.Usage == "" {
				t.Errorf("%s --%s: its usage has a backtick, or is empty: %q", c.CommandPath(), f.Name, f.Usage)
			}
			if name, _ := pflag.UnquoteUsage(f); strings.Contains(name, " ") {
				t.Errorf("%s --%s has the type %q", c.CommandPath(), f.Name, name)
			}
		})
		for line := range strings.Lines(c.Long) {
			if len([]rune(line)) > 101 {
				t.Errorf("%s: a line of its help has %d columns: %s", c.CommandPath(), len([]rune(line)), line)
			}
		}
	})
	if flags < 50 {
		t.Errorf("only %d flags were looked at", flags)
	}
}

// A command whose -o has the forms of a list has all of them.
func TestFormsOfLists(t *testing.T) {
	each(t, func(c *cobra.Command) {
		fn, has := c.GetFlagCompletionFunc("output")
		if !has || c.Flags().Lookup("output") == nil {
			return
		}
		forms, _ := fn(c, nil, "")
		if slices.Contains(forms, "wide") && !slices.Contains(forms, "json") {
			t.Errorf("%s -o: %q has wide and no json", c.CommandPath(), forms)
		}
	})
}

// The README's table of exit codes is the program's.
func TestReadmeListsExitCodes(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "## Exit codes")
	if !found {
		t.Fatal("the README has no section on exit codes")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	var codes []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([0-9]+) \|`).FindAllStringSubmatch(table, -1) {
		codes = append(codes, m[1])
	}
	if want := []string{"0", "1", "2", "3"}; !slices.Equal(codes, want) || exitOK != 0 || exitProblem != 1 || exitChanges != 2 || exitUnknown != 3 {
		t.Errorf("the README lists %q, want %q", codes, want)
	}
	// What a command's help says of its codes, the table says too.
	each(t, func(c *cobra.Command) {
		for _, m := range regexp.MustCompile(`(?:Exit code|;)\s+([0-9]):`).FindAllStringSubmatch(c.Long, -1) {
			if code := m[1]; code > "1" && !regexp.MustCompile(`(?m)^\| `+code+` \|.*`+c.Name()).MatchString(table) {
				t.Errorf("%s ends with %s, and the README's table does not say so", c.CommandPath(), code)
			}
		}
	})
}
