package access

import (
	"strings"
	"testing"
)

// FuzzKubeconfig: what is accepted runs nothing, reads no file, and checks whom
// it talks to; what is refused is not repeated.
func FuzzKubeconfig(f *testing.F) {
	const server = "server: https://rome.example.org:6443"
	for _, user := range []string{
		"token: abc", "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}", "auth-provider: {name: gcp}",
		"tokenFile: /etc/passwd", "client-certificate: /etc/x, client-key: /etc/x", "username: a, password: b", "as: system:admin",
	} {
		f.Add([]byte(kubeconfig(server, user)))
	}
	for _, cluster := range []string{server + ", certificate-authority: /etc/ca", server + ", insecure-skip-tls-verify: true", "server: http://x", "server: unix:///x", server + ", proxy-url: http://x"} {
		f.Add([]byte(kubeconfig(cluster, "token: abc")))
	}
	f.Add([]byte("a: &a [*a, *a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		config, err := SafeRESTConfig(text)
		if err != nil {
			return
		}
		switch {
		case config.ExecProvider != nil, config.AuthProvider != nil:
			t.Fatal("it runs a program")
		case config.BearerTokenFile != "", config.CertFile != "", config.KeyFile != "", config.CAFile != "":
			t.Fatal("it reads a file")
		case config.Insecure, !strings.HasPrefix(config.Host, "https://"):
			t.Fatalf("it does not check whom it talks to: %s", config.Host)
		}
	})
}
