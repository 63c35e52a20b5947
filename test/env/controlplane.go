package env

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// readyPoll is how often a starting server is asked; a start takes seconds.
const readyPoll = 50 * time.Millisecond

// serviceIssuer is who the cluster's ServiceAccount tokens say they are from.
const serviceIssuer = "https://kubernetes.default.svc.cluster.local"

// advertised is told to kube-apiserver as the address others reach it at: it
// refuses to advertise a loopback address. It is from the range set aside for
// documentation (RFC 5737), and nobody learns of it: the endpoint reconciler
// that would publish it is off.
const advertised = "192.0.2.1"

// controllers are those of kube-controller-manager that make sense without
// kubelets and a scheduler. The node lifecycle controller above all stays off:
// it would declare every Node lost after 40 s, because no kubelet renews it.
var controllers = []string{
	"namespace-controller",
	"garbage-collector-controller",
	"serviceaccount-controller",
	"root-ca-certificate-publisher-controller",
	"resourcequota-controller",
	"clusterrole-aggregation-controller",
	"certificatesigningrequest-approving-controller",
	"certificatesigningrequest-signing-controller",
	"certificatesigningrequest-cleaner-controller",
	"deployment-controller",
	"replicaset-controller",
	"disruption-controller",
	"validatingadmissionpolicy-status-controller",
}

// podControllers are those that make sense where pods are scheduled and nodes
// renewed.
var podControllers = []string{"node-lifecycle-controller", "taint-eviction-controller", "pod-garbage-collector-controller", "endpointslice-controller", "job-controller"}

// FakeNode is the annotation of nodes that kwok keeps alive and whose pods it
// runs, with its value.
const (
	FakeNode      = "kwok.x-k8s.io/node"
	FakeNodeValue = "fake"
)

// writePKI makes the cluster's authority and what its servers need from it.
func (c *Cluster) writePKI() error {
	var err error
	if c.ca, err = newAuthority(c.Name + "-ca"); err != nil {
		return err
	}
	c.CA = c.ca.certPEM
	serving, err := c.ca.server("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	tokenKey, tokenPEM, err := newKey()
	if err != nil {
		return fmt.Errorf("make a key for ServiceAccount tokens: %w", err)
	}
	tokenPublic, err := publicPEM(tokenKey.Public())
	if err != nil {
		return fmt.Errorf("make a key for ServiceAccount tokens: %w", err)
	}
	return writeFiles(map[string][]byte{
		c.file("ca.crt"):        c.ca.certPEM,
		c.file("ca.key"):        c.ca.keyPEM,
		c.file("apiserver.crt"): serving.cert,
		c.file("apiserver.key"): serving.key,
		c.file("token.key"):     tokenPEM,
		c.file("token.pub"):     tokenPublic,
	})
}

func (c *Cluster) startEtcd(ctx context.Context) (err error) {
	client, peer := "http://"+c.ports.etcd.address(), "http://"+c.ports.etcdPeer.address()
	c.etcd, err = startProcess("etcd", c.Dir, c.tools.etcd, []string{
		"--name=default",
		"--data-dir=" + c.file("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		"--unsafe-no-fsync",
		"--log-level=warn",
	}, SeldomCollected)
	if err != nil {
		return err
	}
	return waitReady(ctx, c.etcd, http.DefaultClient, client+"/health")
}

func (c *Cluster) startAPIServer(ctx context.Context) (err error) {
	args := []string{
		"--etcd-servers=http://" + c.ports.etcd.address(),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.ports.apiserver.number),
		"--advertise-address=" + advertised,
		"--endpoint-reconciler-type=none",
		"--client-ca-file=" + c.file("ca.crt"),
		"--tls-cert-file=" + c.file("apiserver.crt"),
		"--tls-private-key-file=" + c.file("apiserver.key"),
		"--service-account-issuer=" + serviceIssuer,
		"--service-account-key-file=" + c.file("token.pub"),
		"--service-account-signing-key-file=" + c.file("token.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--profiling=false",
		// Ending takes as long as the longest watch otherwise.
		"--shutdown-delay-duration=0s",
		"--shutdown-watch-termination-grace-period=0s",
	}
	if !c.options.ControllerManager {
		// Nobody makes the default ServiceAccount that this plugin demands
		// of a Pod's namespace.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if c.options.Audit {
		audit, err := c.auditArgs()
		if err != nil {
			return err
		}
		args = append(args, audit...)
	}
	args = append(args, c.options.APIServerArgs...)
	if c.apiserver, err = startProcess("kube-apiserver", c.Dir, c.tools.apiserver, args, SeldomCollected); err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return err
	}
	return waitReady(ctx, c.apiserver, client, c.URL+"/readyz")
}

// clientArgs are those of every server of the control plane that is a client of
// kube-apiserver.
func (c *Cluster) clientArgs(at *port) []string {
	return []string{
		"--kubeconfig=" + c.KubeconfigPath,
		"--authentication-kubeconfig=" + c.KubeconfigPath,
		"--authorization-kubeconfig=" + c.KubeconfigPath,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(at.number),
		"--tls-cert-file=" + c.file("apiserver.crt"),
		"--tls-private-key-file=" + c.file("apiserver.key"),
		"--leader-elect=false",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--profiling=false",
	}
}

// awaitHealthy waits for one of them.
func (c *Cluster) awaitHealthy(ctx context.Context, p *process, at *port) error {
	client, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: c.CA}})
	if err != nil {
		return err
	}
	return waitReady(ctx, p, client, "https://"+at.address()+"/healthz")
}

func (c *Cluster) startControllerManager(ctx context.Context) (err error) {
	controllers := controllers
	if c.options.Pods {
		controllers = append(slices.Clone(controllers), podControllers...)
	}
	c.managers, err = startProcess("kube-controller-manager", c.Dir, c.tools.managers, append(c.clientArgs(c.ports.managers),
		"--controllers="+strings.Join(controllers, ","),
		"--cluster-signing-cert-file="+c.file("ca.crt"),
		"--cluster-signing-key-file="+c.file("ca.key"),
		"--root-ca-file="+c.file("ca.crt"),
		"--service-account-private-key-file="+c.file("token.key"),
		// Quotas are corrected every 5 minutes otherwise.
		"--resource-quota-sync-period=5s",
	), SeldomCollected)
	if err != nil {
		return err
	}
	return c.awaitHealthy(ctx, c.managers, c.ports.managers)
}

// PodLog is what every pod on a fake node has logged.
const PodLog = "a pod on a fake node"

// kwokConfig lets fake nodes answer for the logs of pods, and run commands on
// this machine.
const kwokConfig = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata: {name: all}
spec: {logs: [{logsFile: %q}]}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterExec
metadata: {name: all}
spec: {execs: [{local: {}}]}
`

// Kubelet is where the fake nodes of a cluster with Pods answer as kubelets do.
func (c *Cluster) Kubelet() (host string, port int32, err error) {
	host, text, err := net.SplitHostPort(c.ports.kwok.address())
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return host, int32(n), err
}

// startPods starts what makes pods run.
func (c *Cluster) startPods(ctx context.Context) (err error) {
	c.scheduler, err = startProcess("kube-scheduler", c.Dir, c.tools.scheduler, c.clientArgs(c.ports.scheduler), SeldomCollected)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.file("pods.log"), []byte("2026-11-20T12:00:00.000000000Z stdout F "+PodLog+"\n"), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(c.file("kwok.yaml"), fmt.Appendf(nil, kwokConfig, c.file("pods.log")), 0o600); err != nil {
		return err
	}
	c.kwok, err = startProcess("kwok", c.Dir, c.tools.kwok, []string{
		"--kubeconfig=" + c.KubeconfigPath,
		"--config=" + c.file("kwok.yaml"),
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector=" + FakeNode + "=" + FakeNodeValue,
		"--server-address=" + c.ports.kwok.address(),
		// A Lease renewed every 5 s. Status alone comes every 25 s, after the
		// controller manager has called the node lost and its pods not ready.
		"--node-lease-duration-seconds=20",
	}, SeldomCollected)
	if err != nil {
		return err
	}
	if err := c.awaitHealthy(ctx, c.scheduler, c.ports.scheduler); err != nil {
		return err
	}
	return waitReady(ctx, c.kwok, http.DefaultClient, "http://"+c.ports.kwok.address()+"/healthz")
}

// waitReady asks a server until it answers 200, it ends, or the context does.
func waitReady(ctx context.Context, p *process, client *http.Client, url string) error {
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	var last error
	for {
		if last = probe(ctx, client, url); last == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.failure()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to be ready: %w; last answer: %w; the end of %s:\n%s", p.name, ctx.Err(), last, p.log, logTail(p.log))
		case <-ticker.C:
		}
	}
}

func probe(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
