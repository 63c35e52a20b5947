package completing

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// closed are the flags whose values are all known.
var closed = map[string][]string{
	"by":                 {"tenant", "intent", "provider", "month", "contract", "label:"},
	"broker-transport":   {"http"},
	"enforce":            {"auto", "never"},
	"forge":              {"github", "gitlab", "gitea"},
	"limits-enforcement": {"None", "Soft", "Hard"},
	"log-format":         {"text", "json"},
	"log-level":          {"debug", "info", "warn", "error"},
	"market-store":       {"auto", "kubernetes", "memory"},
	"role":               {"agent", "operator", "reader", "server"},
	"simulate objective": {"balanced", "cost", "performance", "latency", "energy"},
	"simulate purchase":  {"on-demand", "spot", "reserved"},
	"simulate queue":     {"wait", "fail"},
	"tracing-protocol":   {"http/protobuf", "grpc"},
}

// directories and files are paths; of files with an extension only those are offered.
var directories = words(`broker-cert-path cert-path dir fleet keys-dir kubeconfigs-dir notify-urls-dir out samples tokens-dir
	source-credentials-dir state-dir webhook-secrets-dir`)

var files = map[string][]string{
	"offers": {"csv"}, "demand": {"csv"}, "html": {"html"}, "trust-root": {"yaml", "yml"}, "signers": {"yaml", "yml"},
	"market": {"yaml", "yml", "csv"}, "witness": {"json"}, "from": nil, "file": {"yaml", "yml"}, "config": {"yaml", "yml"},
	"audit export output": nil, "forge-ca-file": nil, "github-app-key-file": nil, "forge-token-file": nil, "git-bearer-file": nil, "git-ca-file": nil,
	"git-known-hosts": nil, "git-password-file": nil, "git-ssh-key": nil, "kubeconfig": nil, "market-kubeconfig": nil, "notify-ca-file": nil,
	"oidc-ca-file": nil, "oidc-client-secret-file": nil, "oidc-session-key-file": nil,
	"operators-kubeconfig": nil, "policy-key": nil, "version verify": nil, "version key": {"pub", "pem"}, "version provenance": {"jsonl", "json"}, "signing-key": nil, "signing-key-passphrase-file": nil, "tracing-ca-file": nil, "webhook-client-ca-file": nil,
}

// free are those whose values nobody can list: text, addresses, times, commits.
var free = words(`accept-rewrite advertise-address accept-undone agents-address allow-ends at child-memory cluster-endpoint cluster-id
	arg broker-url context etcd-quota fleet-id image kubeconfig-programs repo-url server forge-repo forge-url forge-user git-user github-app-id github-app-installation health-probe-bind-address host identity leader-election-namespace
	leader-election-id lift machines market-namespace metrics-bind-address name oidc-client-id
	oidc-allowed-groups oidc-groups-claim oidc-groups-prefix oidc-issuer oidc-name-claim oidc-operator-groups oidc-redirect-url oidc-scopes operators-address penalty person plan-check-memory rate release releases repo
	since source-hosts to tracing-endpoint tracing-ratio until webhook-bind-address webhook-configuration webhooks-address`)

func words(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// Apply registers what is declared for each flag that has no completion yet. known
// completes names that a fleet repo has, by the flag's name or "command flag".
func Apply(root *cobra.Command, known map[string]cobra.CompletionFunc) {
	walk(root, func(c *cobra.Command, f *pflag.Flag) {
		if f.Value.Type() == "bool" || has(c, f) {
			return
		}
		for _, name := range []string{path(c) + " " + f.Name, f.Name} {
			if fn := known[name]; fn != nil {
				_ = c.RegisterFlagCompletionFunc(f.Name, fn)
				return
			}
			if extensions, is := files[name]; is {
				_ = c.MarkFlagFilename(f.Name, extensions...)
				return
			}
			if values := closed[name]; len(values) > 0 {
				_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
				return
			}
			if directories[name] {
				_ = c.MarkFlagDirname(f.Name)
				return
			}
			if free[name] || isFigure(f) {
				_ = c.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
				return
			}
		}
	})
}

// Missing are the flags, as "command --flag", of which nothing says what they take.
func Missing(root *cobra.Command) []string {
	var out []string
	walk(root, func(c *cobra.Command, f *pflag.Flag) {
		if f.Value.Type() != "bool" && !has(c, f) {
			out = append(out, c.CommandPath()+" --"+f.Name)
		}
	})
	slices.Sort(out)
	return out
}

// isFigure reports whether a flag takes a number or a duration.
func isFigure(f *pflag.Flag) bool {
	return slices.Contains([]string{"int", "int32", "int64", "uint", "uint64", "float64", "duration", "intSlice"}, f.Value.Type())
}

func has(c *cobra.Command, f *pflag.Flag) bool {
	if _, registered := c.GetFlagCompletionFunc(f.Name); registered {
		return true
	}
	_, file := f.Annotations[cobra.BashCompFilenameExt]
	_, dir := f.Annotations[cobra.BashCompSubdirsInDir]
	return file || dir
}

// path is a command's name below the root: "audit log".
func path(c *cobra.Command) string {
	_, below, _ := strings.Cut(c.CommandPath(), " ")
	return below
}

// walk visits each command's own flags.
func walk(c *cobra.Command, visit func(*cobra.Command, *pflag.Flag)) {
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			visit(c, f)
		}
	})
	for _, sub := range c.Commands() {
		walk(sub, visit)
	}
}
