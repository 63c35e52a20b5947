package access

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// kubeconfig is a kubeconfig with these entries for cluster and user.
func kubeconfig(cluster, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {%s}}]
users: [{name: u, user: {%s}}]
`, cluster, user)
}

func TestSafeRESTConfig(t *testing.T) {
	const server = "server: https://rome.example.org:6443"
	cases := map[string]struct {
		reason string
		text   string
		err    string
	}{
		"token":            {"all in the text", kubeconfig(server, "token: abc"), ""},
		"exec":             {"runs a program", kubeconfig(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}"), `runs the program "aws" (exec), which is not allowed here`},
		"auth-provider":    {"does too", kubeconfig(server, "auth-provider: {name: gcp}"), "auth-provider"},
		"token file":       {"reads files of the daemon", kubeconfig(server, "tokenFile: /var/run/secrets/token"), "names a file"},
		"certificate file": {"reads files of the daemon", kubeconfig(server, "client-certificate: /etc/x.crt, client-key: /etc/x.key"), "names a file"},
		"CA file":          {"reads files of the daemon", kubeconfig(server+", certificate-authority: /etc/ca.crt", "token: abc"), "names a file"},
		"insecure":         {"anybody could answer", kubeconfig(server+", insecure-skip-tls-verify: true", "token: abc"), "does not verify"},
		"http":             {"the token would be read on the way", kubeconfig("server: http://rome.example.org", "token: abc"), "not reached by https"},
		"not yaml":         {"the error must not repeat the text", "token: {secret-text", "it is not a kubeconfig"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config, err := SafeRESTConfig([]byte(tc.text))
			if tc.err == "" {
				if err != nil || config.BearerToken != "abc" || config.Host != "https://rome.example.org:6443" {
					t.Fatalf("%s: got %v, %v", tc.reason, config, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "secret-text") {
				t.Fatalf("%s: got %v, want %q", tc.reason, err, tc.err)
			}
		})
	}
}

// A program runs only by the very path that is allowed, without a say in its environment.
func TestSafeRESTConfig_Programs(t *testing.T) {
	for name, c := range map[string]struct {
		exec string
		err  string
	}{
		"allowed":        {"command: /opt/bin/cloud, args: [get-token, a]", ""},
		"another":        {"command: /opt/bin/sh, args: [-c, id]", "--kubeconfig-programs"},
		"by its name":    {"command: cloud", "not allowed here"},
		"a way around":   {"command: /opt/bin/x/../cloud", "not allowed here"},
		"environment":    {"command: /opt/bin/cloud, env: [{name: LD_PRELOAD, value: /tmp/x}]", "set them in the daemon's own"},
		"relative":       {"command: ./cloud", "not allowed here"},
		"beside a file":  {"command: /opt/bin/cloud}, tokenFile: /etc/fleetbroker/git/password, as-user-extra: {", "names a file"},
		"beside a token": {"command: /opt/bin/cloud}, token: abc, as-user-extra: {", "another credential"},
	} {
		t.Run(name, func(t *testing.T) {
			text := kubeconfig("server: https://rome.example.org:6443", "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always, "+c.exec+"}")
			config, err := SafeRESTConfig([]byte(text), "/opt/bin/cloud", "./cloud")
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if err == nil && (config.ExecProvider.InteractiveMode != "Never" || config.ExecProvider.Command != "/opt/bin/cloud") {
				t.Errorf("runs %+v", config.ExecProvider)
			}
		})
	}
}

// Arguments after a path in the allow list are those that the program is run with.
func TestSafeRESTConfig_Arguments(t *testing.T) {
	for name, c := range map[string]struct {
		programs []string
		args     string
		err      string
	}{
		"as listed":            {[]string{"/opt/bin/cloud token -i *"}, "[token, -i, rome]", ""},
		"another cluster":      {[]string{"/opt/bin/cloud token -i *"}, "[token, -i, oslo]", ""},
		"by another entry":     {[]string{"/opt/bin/cloud token -i *", "/opt/bin/cloud login"}, "[login]", ""},
		"any, by a path":       {[]string{"/opt/bin/cloud token -i *", "/opt/bin/cloud"}, "[anything]", ""},
		"a space in the path":  {[]string{"/opt/my cloud"}, "[token]", "not allowed here: use a token"},
		"one more":             {[]string{"/opt/bin/cloud token -i *"}, "[token, -i, rome, --debug]", `has "/opt/bin/cloud token -i *"`},
		"one less":             {[]string{"/opt/bin/cloud token -i *"}, "[token, -i]", "arguments"},
		"none":                 {[]string{"/opt/bin/cloud token -i *"}, "[]", "arguments"},
		"another":              {[]string{"/opt/bin/cloud token -i *"}, "[tokens, -i, rome]", "arguments"},
		"a flag for the any":   {[]string{"/opt/bin/cloud token -i *"}, "[token, -i, --config=/tmp/x]", "arguments"},
		"nothing for the any":  {[]string{"/opt/bin/cloud token -i *"}, `[token, -i, ""]`, "arguments"},
		"two in one":           {[]string{"/opt/bin/cloud token -i *"}, "[token -i rome]", "arguments"},
		"no path in the entry": {[]string{" "}, "[]", "not allowed here"},
	} {
		t.Run(name, func(t *testing.T) {
			text := kubeconfig("server: https://rome.example.org:6443", "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: /opt/bin/cloud, args: "+c.args+"}")
			_, err := SafeRESTConfig([]byte(text), c.programs...)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
		})
	}
}

type secrets map[string]struct{ data, label string }

// Secret implements Secrets.
func (s secrets) Secret(_ context.Context, name string) (map[string][]byte, map[string]string, error) {
	entry, ok := s[name]
	if !ok {
		return nil, nil, os.ErrNotExist
	}
	return map[string][]byte{"kubeconfig": []byte(entry.data)}, map[string]string{LabelCluster: entry.label}, nil
}

func TestKubeconfigs(t *testing.T) {
	good := kubeconfig("server: https://rome.example.org:6443", "token: abc")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rome.kubeconfig"), []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	held := secrets{"rome-kubeconfig": {good, "rome"}, "other": {good, "oslo"}}
	from := func(name, key string) *v1alpha1.ClusterAccess {
		return &v1alpha1.ClusterAccess{KubeconfigSecretRef: &v1alpha1.SecretKeyRef{Name: name, Key: key}}
	}
	cases := map[string]struct {
		from   Kubeconfigs
		name   string
		access *v1alpha1.ClusterAccess
		err    string
	}{
		"file":           {Kubeconfigs{Dir: dir}, "rome", nil, ""},
		"no file":        {Kubeconfigs{Dir: dir}, "oslo", nil, "oslo.kubeconfig"},
		"no directory":   {Kubeconfigs{}, "rome", nil, "--kubeconfigs-dir"},
		"outside":        {Kubeconfigs{Dir: filepath.Join(dir, "sub")}, "../rome", nil, "no such file"},
		"secret":         {Kubeconfigs{Secrets: held}, "rome", from("rome-kubeconfig", ""), ""},
		"secret's key":   {Kubeconfigs{Secrets: held}, "rome", from("rome-kubeconfig", "config"), "no key config"},
		"other's secret": {Kubeconfigs{Secrets: held}, "rome", from("other", ""), "label it fleetbroker.io/cluster=rome"},
		"missing secret": {Kubeconfigs{Secrets: held}, "rome", from("nothing", ""), "read Secret nothing"},
		"not in cluster": {Kubeconfigs{Dir: dir}, "rome", from("rome-kubeconfig", ""), "does not run in a cluster"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: tc.name}, Spec: v1alpha1.ClusterSpec{Access: tc.access}}
			_, err := tc.from.RESTConfig(t.Context(), cluster)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
		})
	}
}
