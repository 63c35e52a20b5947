package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
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
