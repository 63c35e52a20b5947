package access

import (
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// A refusal is one line of bounded length, and repeats no credential, whatever its author
// put into names, addresses and arguments.
func TestSafeRESTConfig_RefusalsRepeatNoSecret(t *testing.T) {
	const server, secret = "server: https://rome.example.org:6443", "s3cret-text"
	file := kubeconfig(server, "tokenFile: /etc/passwd")
	for name, c := range map[string]struct{ text, err string }{
		"arguments of a program":    {kubeconfig(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: /opt/bin/cloud, args: [--password, "+secret+"], interactiveMode: Never}"), "2 arguments that are not allowed"},
		"a proxy's password":        {kubeconfig(server+", proxy-url: 'http://u:"+secret+"@x y'", "token: abc"), "proxy-url"},
		"a proxy of another scheme": {kubeconfig(server+", proxy-url: 'file://u:"+secret+"@x'", "token: abc"), "proxy-url"},
		"a server's password":       {kubeconfig("server: 'https://u:"+secret+"@rome.example.org'", "token: abc"), "cluster c has a server"},
		"a server with a space":     {kubeconfig("server: 'https://"+secret+" x'", "token: abc"), "cluster c has a server"},
		"a server of no host":       {kubeconfig("server: 'https://'", "token: abc"), "cluster c has a server"},
		"two credentials":           {kubeconfig(server, "token: "+secret+", username: u, password: "+secret), "more than one"},
		"a certificate of no key":   {kubeconfig(server, "client-certificate-data: czNjcmV0LXRleHQ="), "client-key"},
		"a name of several lines":   {strings.ReplaceAll(file, "name: u", `name: "u\nlevel=ERROR msg=forged \u202e\x1b[2J"`), "names a file"},
		"a name of 200 KiB":         {strings.ReplaceAll(file, "name: u", "name: "+strings.Repeat("x", 200<<10)), "names a file: put"},
		"a context of 200 KiB":      {"apiVersion: v1\nkind: Config\ncurrent-context: " + strings.Repeat("x", 200<<10) + "\n", "context was not found"},
		"a program of 200 KiB":      {kubeconfig(server, "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: "+strings.Repeat("x", 200<<10)+"}"), "--kubeconfig-programs"},
		"nothing":                   {"", "no configuration"},
		"a file by another case":    {kubeconfig(server, "TOKENFILE: /etc/passwd, clIENT-key: /etc/x, token: abc"), ""},
		"a second document":         {kubeconfig(server, "token: abc") + "---\n" + file, ""},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := SafeRESTConfig([]byte(c.text), "/opt/bin/cloud token")
			if c.err == "" {
				if err != nil || config.BearerToken != "abc" || config.BearerTokenFile+config.KeyFile+config.TLSClientConfig.CAFile != "" {
					t.Errorf("got %v, %v", config, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %.300v, want %q", err, c.err)
			}
			text := err.Error()
			if strings.Contains(text, secret) || len(text) > 1000 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("it says %.1100q", text)
			}
		})
	}
}

// A Secret of a megabyte takes no memory beyond some copies of the largest kubeconfig.
func TestSafeRESTConfig_HostileTextsTakeLittle(t *testing.T) {
	const room = maxKubeconfig - 64
	for name, text := range map[string]string{
		"a megabyte of users": "users: [" + strings.Repeat("{},", 1<<20/3) + "]",
		"users":               "users: [" + strings.Repeat("{},", room/3) + "]",
		"lists":               "a: [" + strings.Repeat("[],", room/3) + "]",
		"aliases":             "a: &a [" + strings.Repeat("x,", 200) + "x]\nb: [" + strings.Repeat("*a,", room/4) + "x]\n",
		"depth":               strings.Repeat("[", room),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := SafeRESTConfig([]byte(text))
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 320<<20 {
				t.Errorf("it took %d MiB, %v", took>>20, err)
			}
		})
	}
}

// A cluster that redirects sends the daemon nowhere: neither to an inner address nor, with
// the token, over http.
func TestSafeRESTConfig_FollowsNoRedirect(t *testing.T) {
	var reached atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(inner.Close)
	status := http.StatusFound
	cluster := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inner.URL+"/latest/meta-data", status)
	}))
	t.Cleanup(cluster.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cluster.Certificate().Raw}))
	config, err := SafeRESTConfig([]byte(kubeconfig("server: "+cluster.URL+", certificate-authority-data: "+ca, "token: abc")))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, status = range []int{301, 302, 303, 307, 308} {
		if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "redirect, which is not followed") {
			t.Errorf("%d: got %v", status, err)
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("the redirect's target was asked %d times", n)
	}
}
