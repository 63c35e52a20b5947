package flagfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

type taken struct {
	repo     string
	interval time.Duration
	notify   bool
	limit    int
	programs []string
	ran      bool
}

// command is one with flags of each kind.
func command() (*cobra.Command, *taken) {
	got := &taken{}
	cmd := &cobra.Command{Use: "run", SilenceUsage: true, SilenceErrors: true, RunE: func(*cobra.Command, []string) error { got.ran = true; return nil }}
	fs := cmd.Flags()
	fs.StringVar(&got.repo, "repo", "", "")
	fs.DurationVar(&got.interval, "poll-interval", time.Minute, "")
	fs.BoolVar(&got.notify, "notify", true, "")
	fs.IntVar(&got.limit, "limit", 0, "")
	fs.Lookup("limit").NoOptDefVal = "1000"
	fs.StringSliceVar(&got.programs, "programs", nil, "")
	Register(cmd)
	return cmd, got
}

func run(t *testing.T, text string, args ...string) (*taken, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "flags.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, got := command()
	cmd.SetArgs(append([]string{"--config", file}, args...))
	return got, cmd.Execute()
}

func TestRead_SetsFlags(t *testing.T) {
	got, err := run(t, "# the daemon\nrepo: https://git.example.org/f.git\npoll-interval: 5s\nnotify: false\nlimit: 7\nprograms: [/a, \"/b x\"]\n")
	if err != nil || !got.ran || got.repo != "https://git.example.org/f.git" || got.interval != 5*time.Second || got.notify || got.limit != 7 || !slices.Equal(got.programs, []string{"/a", "/b x"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	// The command line wins, whatever its order, for lists as a whole too.
	got, err = run(t, "repo: a\nlimit: 7\nprograms: [/a]\nnotify: false\n", "--repo", "b", "--programs", "/c", "--notify")
	if err != nil || got.repo != "b" || got.limit != 7 || !slices.Equal(got.programs, []string{"/c"}) || !got.notify {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n", "null\n"} {
		if got, err := run(t, empty); err != nil || !got.ran {
			t.Errorf("%q: %+v, %v", empty, got, err)
		}
	}
}

// The command line wins over the environment, and that over the file; variables of a Service
// of Kubernetes are not meant.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{"FLEETBROKER_RUN_REPO": "e", "FLEETBROKER_RUN_POLL_INTERVAL": "7s", "FLEETBROKER_RUN_PROGRAMS": "/a,/b", "FLEETBROKER_RUN_NOTIFY": "false", "FLEETBROKER_PORT": "tcp://10.0.0.1:443"} {
		t.Setenv(name, value)
	}
	got, err := run(t, "repo: f\nlimit: 7\npoll-interval: 5s\n", "--notify")
	if err != nil || !got.ran || got.repo != "e" || got.interval != 7*time.Second || got.limit != 7 || !got.notify || !slices.Equal(got.programs, []string{"/a", "/b"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, tc := range map[string]struct{ value, want string }{
		"FLEETBROKER_RUN_REPOO":         {"x", `environment variable FLEETBROKER_RUN_REPOO: "repoo" is no flag that can be set here; did you mean repo?`},
		"FLEETBROKER_RUN_CONFIG":        {"x", `FLEETBROKER_RUN_CONFIG: "config" is no flag that can be set here`},
		"FLEETBROKER_RUN_POLL_INTERVAL": {"soon", `FLEETBROKER_RUN_POLL_INTERVAL: invalid argument "soon"`},
	} {
		cmd, got := command()
		if err := Environment([]string{"HOME=/", name + "=" + tc.value}, cmd.Flags()); err == nil || !strings.Contains(err.Error(), tc.want) || got.repo != "" {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}

func TestRead_SaysWhatIsWrongWhere(t *testing.T) {
	for text, want := range map[string]string{
		"repo: a\nrepoo: b\n":               `flags.yaml:2: "repoo" is no flag that can be set here; did you mean repo?`,
		"--repo: a\n":                       `:1: "--repo": write the flag without dashes, repo`,
		"repo: a\nlimit: 1\nrepo: b\n":      `:3: flag "repo" is there twice, first on line 1`,
		"config: other.yaml\n":              `:1: "config" is no flag that can be set here`,
		"help: true\n":                      `:1: "help" is no flag that can be set here`,
		"poll-interval: soon\n":             `:1: invalid argument "soon" for "--poll-interval"`,
		"notify: maybe\n":                   `:1: invalid argument "maybe" for "--notify"`,
		"repo: [a, b]\n":                    `:1: flag "repo": it takes one value, not a list`,
		"repo: {a: b}\n":                    `flag "repo": its value is neither a scalar nor a list`,
		"repo:\n":                           `flag "repo": it has no value`,
		"programs: [[a]]\n":                 `flag "programs": line 1: not a value`,
		"- repo\n":                          `line 1: not a mapping`,
		"a: &a b\nrepo: *a\n":               `:1: "a" is no flag`,
		"repo: &a b\nprograms: *a\n":        `:2: flag "programs": its value is neither`,
		"repo: a\n---\nrepo: b\n":           `a second document`,
		"repo: \"a\n":                       `read flags from `,
		strings.Repeat("# long\n", 200_000): `more than 1048576 bytes`,
	} {
		got, err := run(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || got.ran {
			t.Errorf("%.40q: ran %t, %v; want %s", text, got.ran, err, want)
		}
	}
	cmd, got := command()
	cmd.SetArgs([]string{"--config", filepath.Join(t.TempDir(), "none.yaml")})
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "none.yaml") || got.ran {
		t.Errorf("a missing file: %v", err)
	}
}
