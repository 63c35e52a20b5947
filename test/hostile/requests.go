package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
)

// Request is what somebody sends to a port of the daemon.
type Request struct {
	// Name is unique.
	Name string
	// As is whose certificate is shown: paris, rome, or "" on the webhooks' port.
	As string
	// Method, Path, Header (pairs) and Body are sent as they are.
	Method, Path string
	Header       []string
	Body         []byte
	// Want are the statuses of which one must come.
	Want []int
}

const (
	report  = "/api/v2/clusters/paris/flavors"
	reserve = "/api/v1/reservations"
)

// Requests are hostile requests for all ports.
func Requests() []Request {
	var out []Request
	refused := []int{400, 403, 404, 405, 409, 411, 412, 413, 415, 422, 429}
	add := func(as, method, path, body string, header ...string) {
		out = append(out, Request{Name: fmt.Sprintf("%s-%d", as, len(out)), As: as, Method: method, Path: path, Body: []byte(body), Header: header, Want: refused})
	}
	flavor := func(name, spec string) string {
		return fmt.Sprintf(`{"flavors":[{"metadata":{"name":%s},"spec":{"capacity":{"cpu":"8","gpu":2}%s}}]}`, name, spec)
	}
	for i, body := range []string{
		"", "{", "[]", "null", `"x"`, "\x00", "\xff\xfe", `{"flavors":{}}`, `{"flavors":[null]}`, `{"flavors":[[]]}`,
		flavor(`"a"`, `,"used":{"gpu":99999999999999999999999999}`), flavor(`"a"`, `,"used":{"memory":"999999999999Ei"}`),
		flavor(`"a"`, `,"used":{"memory":"1e2147483647"}`), flavor(`"a"`, `,"used":{"gpu":`+strings.Repeat("9", 1<<20)+`}`),
		flavor(`"a"`, `,"used":{"gpu":-1}`), flavor(`"a"`, `,"price":{"currency":"EUR","perHour":{"gpu":"-1"}}`),
		flavor(`"a"`, `,"price":{"currency":"EUR","perHour":{"gpu":1e3}}`), flavor(`"a"`, `,"used":{"gpu":NaN}`), flavor(`"a"`, `,"used":{"gpu":"0.5"}`),
		flavor(`"a"`, `,"gpu":{"unitsPerGPU":-7}`), flavor(`"a","name":"b"`, ``), flavor(`"a","NAME":"b"`, ``), flavor(`"a","namespace":"rome"`, ``),
		flavor(`"p\u0430ris"`, ``), flavor(`"../../x"`, ``), flavor(`"a"`, `,"location":{"city":"\u001b]0;x\u0007"}`), flavor(`"a"`, `,"location":{"city":"\udc00"}`),
		flavor(`"a"`, `,"held":{"../x":{"gpu":1}}`), `{"flavors":` + strings.Repeat("[", 1<<18) + strings.Repeat("]", 1<<18) + `}`,
		strings.Repeat(`{"a":`, 1<<17) + "1" + strings.Repeat("}", 1<<17), `{"flavors":[]}{"flavors":[]}`,
		`{"flavors":[` + strings.TrimSuffix(strings.Repeat(`{"metadata":{"name":"a"}},`, 5000), ",") + `]}`,
		flavor(`"a"`, `,"used":{`+strings.TrimSuffix(many(5000, `"r%d":1,`), ",")+`}`),
		flavor(`"a"`, `,"price":{"currency":"EUR","perHour":{"gpu":"1"},"windows":[`+strings.TrimSuffix(strings.Repeat(`{"from":"20:00","to":"06:00","timezone":"Europe/Rome","perHour":{"gpu":"1"}},`, 5000), ",")+`]}`),
		flavor(`"a"`, `,"labels":{"fleetbroker.io/x":"y"}`), flavor(`"a"`, `,"endpoint":"https://user:password@evil.example"`),
		`{"flavors":[],"demand":{"pods":[` + strings.TrimSuffix(strings.Repeat(`{},`, 5000), ",") + `]}}`,
		`{"flavors":[],"demand":-1}`, strings.Repeat(" ", 9<<20),
	} {
		if i == 0 { // a report of nothing says that what was reported holds: of a generation that nobody knows
			add("paris", "PUT", report, body, "Fleetbroker-Generation", "9.9")
			continue
		}
		add("paris", "PUT", report, body, "Fleetbroker-Generation", fmt.Sprintf("1.%d", i+10))
	}
	// Words that nobody knows are ignored in a report, as newer agents' are, and an
	// agent may withdraw all it offered; the honest report after them stands.
	for i := range out {
		if b := string(out[i].Body); b == "null" || strings.Contains(b, `"labels"`) || strings.Contains(b, `"pods":[`) {
			out[i].Want = []int{204}
		}
	}
	for _, generation := range []string{"", "x", "1", "1.1", "-1.1", "1.-1", "99999999999999999999.1", "1.1\t", "4611686018427387904.1", "4611686018427387905.1", strings.Repeat("1", 10_000) + ".1"} {
		add("paris", "PUT", report, `{"flavors":[]}`, "Fleetbroker-Generation", generation)
	}
	for _, path := range []string{"/api/v2/clusters/rome/flavors", "/api/v2/clusters/%2e%2e/flavors", "/api/v2/clusters/par%00is/flavors", "/api/v2/clusters/p\u0430ris/flavors", "/api/v2/clusters/" + strings.Repeat("x", 10_000) + "/flavors", "//api/v2/../../etc/passwd"} {
		add("paris", "PUT", path, `{"flavors":[]}`, "Fleetbroker-Generation", "1.99")
	}
	add("paris", "PUT", report, gzipped(64<<20), "Fleetbroker-Generation", "1.100", "Content-Encoding", "gzip")
	for i, list := range []string{`{"flavors":[`, `{"FLAVORS":[`, `{"flavors":[],"demand":{"pods":[`} { // each {} would be a struct
		add("paris", "PUT", report, packedText(list+strings.Repeat("{},", 8<<20/3-20)+"{}]}"+strings.Repeat("}", strings.Count(list, "{")-1)), "Fleetbroker-Generation", fmt.Sprintf("1.%d", 110+i), "Content-Encoding", "gzip")
	}
	tiny := `"held":{` + strings.TrimSuffix(many(5000, `"c%d":{},`), ",") + `}`
	add("paris", "PUT", report, `{"flavors":[`+strings.TrimSuffix(many(80, `{"metadata":{"name":"f%d"},"spec":{"capacity":{"cpu":"8"},`+strings.ReplaceAll(tiny, "%", "%%")+`}},`), ",")+`]}`, "Fleetbroker-Generation", "1.103")
	add("paris", "PUT", report, "not gzip", "Fleetbroker-Generation", "1.101", "Content-Encoding", "gzip")
	add("paris", "PUT", report, "x", "Fleetbroker-Generation", "1.102", "Content-Encoding", "br")
	for _, body := range []string{"{", "null", `{"clusterID":"rome"}`, `{"clusterID":"paris","clusterID":"rome"}`, `{"clusterID":"paris","resources":{"allocatable":{"cpu":"-8"}}}`} {
		add("paris", "POST", "/api/v1/advertisements", body)
	}
	add("paris", "POST", reserve, `{"requestedResources":{"cpu":"1","memory":"1Gi"}}`) // paris is no consumer
	add("paris", "GET", "/api/v2/clusters/rome/instructions", "")
	add("paris", "GET", "/api/v2/clusters/paris/instructions?wait=-1s", "")
	add("paris", "DELETE", "/api/v2/reservations/rq-0000", "")
	add("paris", "PATCH", report, "x")
	add("paris", "GET", "/debug/pprof/heap", "")
	for i, body := range []string{
		"", "{", "null", "[]", "{}", `{"requestedResources":{"cpu":"-1","memory":"1Gi"}}`, `{"requestedResources":{"cpu":"1e30","memory":"1Gi"}}`, `{"requestedResources":{"cpu":"1e2147483647","memory":"1Gi"}}`,
		`{"requestedResources":{"cpu":"1","cpu":"2","memory":"1Gi"}}`, `{"requestedResources":{"cpu":"1","memory":"1Gi"},"priority":-1}`, `{"requestedResources":{"cpu":"1","memory":"1Gi"},"priority":99999}`,
		`{"requestedResources":{"cpu":"1","memory":"1Gi"},"duration":"-1h"}`, `{"requestedResources":{"cpu":"1","memory":"1Gi"},"duration":"P1Y"}`, `{"requestedResources":{"cpu":"1","memory":"1Gi"},"queue":{"policy":"evil"}}`,
		`{"spec":{"consumer":"paris","resources":{"gpu":1}}}`, `{"spec":{"resources":{"gpu":1},"replicas":2000000000}}`, `{"spec":{"resources":{"gpu":1},"evil":true}}`,
		`{"spec":{"resources":{"gpu":1},"placement":{"where":"` + nested(5) + `"}}}`, `{"spec":{"resources":{"gpu":1},"offload":{"namespaces":[{"name":"kube-system"}]}}}`,
		`{"spec":{"resources":{"gpu":1},"offload":{"namespaces":[{"name":"vision","namespaceMappingStrategy":"SelectedName","remoteNamespaceName":"nlp-rome"}]}}}`,
		`{"spec":{"resources":{"gpu":1},"virtualNode":{"kubeconfigSecretRef":{"name":"nlp-at-paris"}}}}`,
		`{"requestedResources":{"cpu":"1","memory":"1Gi"},"requester":{"owner":"\u001b[2J"}}`, `{"requestedResources":{"cpu":"1","memory":"1Gi"},"requester":{"namespace":"../x","name":"a\nInputs: 0"}}`,
		`{"spec":{"resources":{"gpu":100000}}}`, strings.Repeat(`{"spec":`, 20_000) + strings.Repeat("}", 20_000), `{"requestedResources":` + strings.Repeat(" ", 300<<10) + `{}}`,
		`{"spec":{"resources":{"` + "x\\n@root" + `":1}}}`, `{"spec":{"resources":{"gpu":1},"schedule":{"windows":[{"from":"x","to":"y"}]}}}`,
	} {
		add("rome", "POST", reserve, body, "Idempotency-Key", fmt.Sprintf("hostile-%d", i))
	}
	for _, key := range []string{strings.Repeat("k", 300), "k\u202e", "k\x07"} {
		add("rome", "POST", reserve, `{"requestedResources":{"cpu":"1","memory":"1Gi"}}`, "Idempotency-Key", key)
	}
	for _, id := range []string{"rq-0", "..%2f..%2fx", "good", strings.Repeat("x", 5000), "%00", "vision%2Fgood"} {
		add("rome", "DELETE", "/api/v2/reservations/"+id, "")
	}
	return append(out, webhooks()...)
}

// webhooks are calls of who does not know the secret, or sends what no forge
// sends.
func webhooks() []Request {
	var out []Request
	for _, forge := range []string{"github", "gitlab", "gitea", "generic"} {
		for i, h := range [][]string{
			nil, {"X-Hub-Signature-256", "sha256=00"}, {"X-Hub-Signature-256", "sha256=" + strings.Repeat("f", 64)}, {"X-Gitea-Signature", strings.Repeat("0", 64)},
			{"X-Gitlab-Token", ""}, {"X-Gitlab-Token", strings.Repeat("x", 20_000)}, {"X-Signature", "sha512=00"}, {"Authorization", "Bearer "}, {"Authorization", "Bearer " + strings.Repeat("0", 10_000)},
			{"Content-Encoding", "gzip"},
		} {
			body := []byte(`{"ref":"refs/heads/main","commits":[{"message":"x\u001b[2J"}]}`)
			if i == 9 {
				body = []byte(gzipped(16 << 20))
			}
			out = append(out, Request{Name: fmt.Sprintf("hook-%s-%d", forge, i), Method: "POST", Path: "/hooks/" + forge, Header: h, Body: body, Want: []int{400, 401, 404, 413, 415, 431}})
		}
	}
	return append(out,
		Request{Name: "hook-large", Method: "POST", Path: "/hooks/generic", Body: bytes.Repeat([]byte("x"), 4<<20), Want: []int{401}}, // not even read
		Request{Name: "hook-large-gitea", Method: "POST", Path: "/hooks/gitea", Header: []string{"X-Gitea-Signature", strings.Repeat("0", 64)}, Body: bytes.Repeat([]byte("x"), 4<<20), Want: []int{404, 413}},
		Request{Name: "hook-large-signed", Method: "POST", Path: "/hooks/generic", Header: []string{"X-Signature", "sha256=" + strings.Repeat("0", 64)}, Body: bytes.Repeat([]byte("x"), 4<<20), Want: []int{413}},
		Request{Name: "hook-other", Method: "POST", Path: "/hooks/evil", Body: []byte("x"), Want: []int{404}},
		Request{Name: "hook-get", Method: "GET", Path: "/hooks/generic", Want: []int{404, 405}},
		Request{Name: "hook-path", Method: "POST", Path: "/hooks/../../etc/passwd", Want: []int{301, 307, 404}},
	)
}

// gzipped is so many zeros, packed.
func gzipped(n int) string { return packedText(string(make([]byte, n))) }

// packedText is a text, packed.
func packedText(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // into memory
	_ = w.Close()
	return b.String()
}
