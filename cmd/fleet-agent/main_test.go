package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/fleetbroker/fleetbroker/internal/cli/completing"
)

func TestFlags(t *testing.T) {
	required := []string{"--cluster-id", "paris", "--broker-url", "https://127.0.0.1:1"}
	cases := map[string]struct {
		args []string
		want string
	}{
		"nothing":        {nil, `required flag(s) "broker-url", "cluster-id" not set`},
		"log level":      {append([]string{"--log-level", "loud"}, required...), `--log-level "loud": use debug, info, warn or error`},
		"log format":     {append([]string{"--log-format", "xml"}, required...), `--log-format "xml": use text or json`},
		"no kubeconfig":  {append([]string{"--kubeconfig", "/nowhere"}, required...), "find the cluster's API server"},
		"an argument":    {append([]string{"now"}, required...), "unknown command"},
		"no such flag":   {append([]string{"--colour"}, required...), "unknown flag"},
		"not a duration": {append([]string{"--advertisement-requeue-interval", "30"}, required...), "missing unit"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCommand()
			c.SetArgs(tc.args)
			c.SetOut(new(bytes.Buffer))
			c.SetErr(new(bytes.Buffer))
			if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// What kubeconfigs of providers may run reaches the agent, argument by argument.
func TestKubeconfigPrograms(t *testing.T) {
	c := newCommand()
	if err := c.ParseFlags([]string{"--kubeconfig-programs", "/plugins/aws-iam-authenticator token -i *,/plugins/kubelogin"}); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Flags().GetStringSlice("kubeconfig-programs"); err != nil || !slices.Equal(got, []string{"/plugins/aws-iam-authenticator token -i *", "/plugins/kubelogin"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	c := newCommand()
	for flag, want := range map[string]time.Duration{"advertisement-requeue-interval": 30 * time.Second, "instruction-poll-interval": 5 * time.Second} {
		if got, err := c.Flags().GetDuration(flag); err != nil || got != want {
			t.Errorf("--%s is %s (%v), want %s", flag, got, err, want)
		}
	}
	if help := c.Long + c.Example; !strings.Contains(help, "--cluster-id paris") {
		t.Error("the help has no example")
	}
}

// The shell completes every flag, and help has no backticks: a terminal shows them.
func TestFlagsAreCompletedAndHelpIsPlain(t *testing.T) {
	c := newCommand()
	if missing := completing.Missing(c); len(missing) > 0 {
		t.Errorf("declare in internal/cli/completing what these take: %q", missing)
	}
	for flag, want := range map[string]string{"log-level": "warn", "enforce": "never", "limits-enforcement": "Hard", "log-format": "json"} {
		fn, has := c.GetFlagCompletionFunc(flag)
		if !has {
			t.Errorf("--%s is not completed", flag)
			continue
		}
		if offered, _ := fn(c, nil, ""); !slices.Contains(offered, want) {
			t.Errorf("--%s offers %q, not %q", flag, offered, want)
		}
	}
	seen := 0
	c.Flags().VisitAll(func(f *pflag.Flag) {
		seen++
		if strings.Contains(f.Usage, "`") {
			t.Errorf("--%s: its usage has a backtick: %q", f.Name, f.Usage)
		}
	})
	if seen < 15 || strings.Contains(c.Long+c.Short+c.Example, "`") {
		t.Errorf("%d flags, and help %q", seen, c.Long)
	}
}

// `fleet-agent version` and --version print the same line.
func TestVersion(t *testing.T) {
	var printed []string
	for _, args := range [][]string{{"version"}, {"--version"}} {
		var out bytes.Buffer
		c := newCommand()
		c.SetArgs(args)
		c.SetOut(&out)
		if err := c.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		printed = append(printed, out.String())
	}
	if printed[0] != printed[1] || !strings.HasPrefix(printed[0], "fleet-agent ") {
		t.Errorf("%q", printed)
	}
}
