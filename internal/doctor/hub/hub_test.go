package hub

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestLargest(t *testing.T) {
	for name, test := range map[string]struct {
		metrics string
		want    int64
		problem string
	}{
		"1.28 and newer": {metrics: "# HELP apiserver_storage_size_bytes x\n# TYPE apiserver_storage_size_bytes gauge\napiserver_storage_size_bytes{storage_cluster_id=\"etcd-0\"} 1.2582912e+06\n", want: 1258291},
		"1.27":           {metrics: "apiserver_storage_db_total_size_in_bytes{endpoint=\"https://127.0.0.1:2379\"} 4096\n", want: 4096},
		"1.25":           {metrics: "etcd_db_total_size_in_bytes{endpoint=\"a}b\"} 4096\n", want: 4096},
		"several":        {metrics: "apiserver_storage_size_bytes{storage_cluster_id=\"etcd-0\"} 5\napiserver_storage_size_bytes{storage_cluster_id=\"etcd-1\"} 7\napiserver_storage_size_bytes{storage_cluster_id=\"etcd-2\"} 6\n", want: 7},
		"with a time":    {metrics: "apiserver_storage_size_bytes 7 1700000000000\n", want: 7},
		"another name":   {metrics: "apiserver_storage_size_bytes_total 7\n", problem: "have no apiserver_storage_size_bytes"},
		"no number":      {metrics: "apiserver_storage_size_bytes NaN\napiserver_storage_size_bytes -1\napiserver_storage_size_bytes +Inf\napiserver_storage_size_bytes x\n", problem: "have no"},
		"nothing":        {problem: "have no"},
		"a long line":    {metrics: strings.Repeat("x", maxLine+1), problem: "token too long"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := largest(strings.NewReader(test.metrics))
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("got %d, %v; want an error with %q", got, err, test.problem)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %d, %v; want %d", got, err, test.want)
			}
		})
	}
}

// endless is an answer without an end.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		if p[i] = '#'; i%1000 == 0 {
			p[i] = '\n'
		}
	}
	e.read += int64(len(p))
	return len(p), nil
}

func TestLargest_IsBounded(t *testing.T) {
	e := &endless{}
	if _, err := largest(e); err == nil || e.read > maxMetrics+maxLine {
		t.Errorf("read %d bytes, %v; want at most %d and an error", e.read, err, maxMetrics)
	}
}

func TestCheck(t *testing.T) {
	const quota = 2 << 30
	for name, test := range map[string]struct {
		size int64
		want string
	}{
		"below half": {size: quota/2 - 1},
		"half":       {size: quota / 2, want: "1.0 GiB of a quota of 2.0 GiB (50 %)"},
		"full":       {size: quota, want: "2.0 GiB of a quota of 2.0 GiB (100 %)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Check(test.size, quota)
			if test.want == "" {
				if len(got) > 0 {
					t.Errorf("got %+v, want nothing", got)
				}
				return
			}
			if len(got) != 1 || got[0].Code != EtcdHalfFull || !strings.Contains(got[0].Cause, test.want) || got[0].Remedy == "" {
				t.Errorf("got %+v, want one finding with %q", got, test.want)
			}
		})
	}
}

// flagsFor are flags with a kubeconfig of a server.
func flagsFor(t *testing.T, url string, args ...string) *Flags {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: url}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	f := &Flags{}
	fs := pflag.NewFlagSet("doctor", pflag.ContinueOnError)
	f.Register(fs)
	if err := fs.Parse(append([]string{"--market-kubeconfig", path}, args...)); err != nil {
		t.Fatal(err)
	}
	return f
}

// What cannot be read is a note that says why, and what to do; never a finding.
func TestFlags_Look(t *testing.T) {
	for name, test := range map[string]struct {
		status        int
		body          string
		args          []string
		finding, note string
	}{
		"small":       {status: 200, body: "apiserver_storage_size_bytes 1000\n"},
		"half":        {status: 200, body: "apiserver_storage_size_bytes 1000\n", args: []string{"--etcd-quota", "2000"}, finding: "1000 bytes of a quota of 2000 bytes (50 %)"},
		"no right":    {status: 403, note: "allow it the verb get on the nonResourceURL /metrics"},
		"no metric":   {status: 200, note: "have no apiserver_storage_size_bytes"},
		"no metrics":  {status: 404, note: "answered 404"},
		"unavailable": {status: 503, note: "answered 503"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/metrics" || r.Method != http.MethodGet {
					t.Errorf("asked %s %s", r.Method, r.URL.Path)
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			defer server.Close()
			findings, note, err := flagsFor(t, server.URL, test.args...).Look(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if (len(findings) == 1) != (test.finding != "") || len(findings) == 1 && !strings.Contains(findings[0].Cause, test.finding) {
				t.Errorf("findings %+v, want %q", findings, test.finding)
			}
			if (note == "") != (test.note == "") || !strings.Contains(note, test.note) {
				t.Errorf("note %q, want %q", note, test.note)
			}
		})
	}
	if _, note, err := flagsFor(t, "http://127.0.0.1:1").Look(t.Context()); err != nil || !strings.Contains(note, "was not looked at") {
		t.Errorf("nobody listens: note %q, %v", note, err)
	}
	for _, quota := range []string{"0", "-1", "much"} {
		if _, _, err := flagsFor(t, "http://127.0.0.1:1", "--etcd-quota", quota).Look(t.Context()); err == nil || !strings.Contains(err.Error(), "above zero") {
			t.Errorf("--etcd-quota %s: %v", quota, err)
		}
	}
	if _, _, err := (&Flags{quota: "2Gi", kubeconfig: filepath.Join(t.TempDir(), "none")}).Look(t.Context()); err == nil {
		t.Error("a kubeconfig that is missing is no mistake")
	}
	if _, err := rest.InClusterConfig(); err != nil && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		if findings, note, err := (&Flags{quota: "2Gi"}).Look(t.Context()); err != nil || note != "" || len(findings) > 0 {
			t.Errorf("outside of a cluster: %v, %q, %v", findings, note, err)
		}
	}
}
