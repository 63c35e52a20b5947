package hostile

import (
	"strings"
)

// Kubeconfigs are what a cluster's administrators hand over; marker is a file
// that none of them may make, server the address of a cluster.
func Kubeconfigs(server, marker string) map[string]string {
	k := func(cluster, user string) string {
		return "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {" + cluster + "}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {" + user + "}}]\n"
	}
	at := "server: \"" + server + "\""
	return map[string]string{
		"exec": k(at, "exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [\""+marker+"\"], interactiveMode: Never}"), "provider": k(at, "auth-provider: {name: oidc, config: {idp-issuer-url: \""+server+"\"}}"),
		"token-file": k(at, "tokenFile: /etc/passwd"), "key-file": k(at, "client-certificate: /etc/passwd, client-key: /etc/passwd"), "ca-file": k(at+", certificate-authority: /etc/passwd", "token: x"),
		"insecure": k(at+", insecure-skip-tls-verify: true", "token: x"), "plain": k("server: http://127.0.0.1:1", "token: x"), "socket": k("server: unix:///var/run/docker.sock", "token: x"), "proxy": k(at+", proxy-url: http://127.0.0.1:1", "token: x"),
		"empty": "", "words": "x", "nul": "\x00", "list": "[]", "bomb": "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n",
		"huge": strings.Repeat("# x\n", 8<<20), "deep": strings.Repeat("[", 200_000), "token-escape": k(at, "token: \"a\\r\\nX-Evil: b\""),
	}
}

// Answers are bodies that an API server or a forge gives to any question.
func Answers() []string {
	const list = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","metadata":{"resourceVersion":"1"},`
	return []string{
		"", "{", "[]", "null", "[null]", "\x00", "<html>", "{}", `"x"`, "1e999", strings.Repeat("[", 1<<20), strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000),
		list + `"resources":[{"name":"\u001b[2J","kind":"X","verbs":null},null]}`, list + `"resources":[` + strings.TrimSuffix(many(100_000, `{"name":"r%d","kind":"K","namespaced":true,"verbs":["list"]},`), ",") + `]}`,
		`{"kind":"List","items":[` + strings.TrimSuffix(strings.Repeat(`{"metadata":{"name":"x"},"status":{"conditions":[{"type":"Ready","status":"False","message":"\u001b[2J @root"}]}},`, 20_000), ",") + `]}`,
		`{"kind":"Status","status":"Failure","reason":"\u001b]0;owned\u0007","message":"` + strings.Repeat("x", 1<<20) + `","code":500}`,
		`[{"number":1,"index":1,"title":"\u001b[2J/merge @root","state":"open","user":null,"head":null,"base":null}]`, `[` + strings.TrimSuffix(strings.Repeat(`{"number":1,"base":{"ref":"main"},"head":{"sha":"x"}},`, 50_000), ",") + `]`,
		strings.Repeat(" ", 64<<20), `{"title":"` + strings.Repeat("x", 48<<20),
	}
}
