package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/fleetbroker/fleetbroker/test/tools"
)

// ClusterOptions says what StartCluster starts.
type ClusterOptions struct {
	// Name tells clusters apart in logs, kubeconfigs and certificates.
	Name string
	// Dir holds data, certificates, kubeconfigs and logs. When empty a
	// temporary directory is used and removed by Stop.
	Dir string
	// Kubernetes is the version of the servers, "1.30" or "1.33"; empty takes the newest.
	// The first use of an older one builds it, which takes minutes.
	Kubernetes string
	// ControllerManager starts kube-controller-manager: without it namespaces
	// never finish terminating, nothing is garbage-collected, namespaces get
	// no default ServiceAccount and ResourceQuotas are not counted.
	ControllerManager bool
	// Pods starts kube-scheduler and kwok, so that pods are scheduled, and run
	// (as objects) on nodes that carry FakeNode; nodes that nobody renews are
	// lost after some 20 s. It needs ControllerManager.
	Pods bool
	// Audit keeps a log of all requests, for Calls.
	Audit bool
	// APIServerArgs are added to kube-apiserver's arguments.
	APIServerArgs []string
	// Progress hears about programs that have to be built first; may be nil.
	Progress io.Writer
}

// Cluster is a running Kubernetes control plane without kubelets: Nodes and
// Pods are objects that nobody runs.
type Cluster struct {
	// Name is the one of ClusterOptions.
	Name string
	// Dir holds everything on disk, logs included.
	Dir string
	// URL is where kube-apiserver listens.
	URL string
	// CA is the certificate authority of the cluster, as PEM.
	CA []byte
	// Config is an administrator's (system:masters), without client-side
	// rate limits. Copy before changing it.
	Config *rest.Config
	// Kubeconfig is the same as a file's content; KubeconfigPath is that file.
	Kubeconfig     []byte
	KubeconfigPath string

	options ClusterOptions
	tools   clusterTools
	ca      *authority
	ownDir  bool

	mu                        sync.Mutex // one lifecycle operation at a time
	ports                     clusterPorts
	etcd, apiserver, managers *process
	scheduler, kwok           *process
	stopped                   bool

	// For a Pool: what etcd had when the cluster stood, and whether something was done that
	// is not taken back by that.
	stood   map[string]row
	meddled atomic.Bool
}

// clusterTools are the paths of the programs a cluster runs.
type clusterTools struct{ etcd, apiserver, managers, scheduler, kwok string }

// clusterPorts are the ports a cluster holds until it is stopped.
type clusterPorts struct{ etcd, etcdPeer, apiserver, managers, scheduler, kwok *port }

// all are the ports, for whoever handles them alike.
func (p *clusterPorts) all() []**port {
	return []**port{&p.etcd, &p.etcdPeer, &p.apiserver, &p.managers, &p.scheduler, &p.kwok}
}

// StartCluster starts a control plane and returns once it answers ready, its
// default roles included. The context bounds only the start.
func StartCluster(ctx context.Context, options ClusterOptions) (*Cluster, error) {
	if options.Name == "" {
		options.Name = "cluster"
	}
	c := &Cluster{Name: options.Name, options: options}
	if err := c.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start cluster %s: %w", c.Name, err), c.Stop())
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start cluster %s: %w", c.Name, err), c.Stop())
	}
	return c, nil
}

// prepare finds programs and ports and writes certificates and kubeconfigs.
func (c *Cluster) prepare(ctx context.Context) error {
	if err := c.findTools(ctx); err != nil {
		return err
	}
	if err := c.makeDir(); err != nil {
		return err
	}
	if err := c.reservePorts(); err != nil {
		return err
	}
	c.URL = "https://" + c.ports.apiserver.address()
	if err := c.writePKI(); err != nil {
		return err
	}
	config, err := c.ConfigFor("fleetbroker:admin", "system:masters")
	if err != nil {
		return err
	}
	c.Config = config
	if c.Kubeconfig, err = kubeconfigOf(c.Name, config); err != nil {
		return err
	}
	return writeFiles(map[string][]byte{c.KubeconfigPath: c.Kubeconfig})
}

func (c *Cluster) findTools(ctx context.Context) (err error) {
	of := ""
	if c.options.Kubernetes != "" {
		of = "-" + c.options.Kubernetes
	}
	if c.tools.etcd, err = tools.Find(ctx, "etcd", c.options.Progress); err != nil {
		return err
	}
	if c.tools.apiserver, err = tools.Find(ctx, "kube-apiserver"+of, c.options.Progress); err != nil {
		return err
	}
	if c.options.ControllerManager {
		if c.tools.managers, err = tools.Find(ctx, "kube-controller-manager"+of, c.options.Progress); err != nil {
			return err
		}
	}
	if c.options.Pods {
		if c.tools.scheduler, err = tools.Find(ctx, "kube-scheduler"+of, c.options.Progress); err != nil {
			return err
		}
		c.tools.kwok, err = tools.Find(ctx, "kwok", c.options.Progress)
	}
	return err
}

func (c *Cluster) makeDir() (err error) {
	if c.options.Dir == "" {
		c.Dir, err = os.MkdirTemp("", "fleetbroker-"+c.Name+"-")
		c.ownDir = true
	} else if c.Dir, err = filepath.Abs(c.options.Dir); err == nil {
		err = os.MkdirAll(c.Dir, 0o755)
	}
	c.KubeconfigPath = c.file("admin.kubeconfig")
	return err
}

func (c *Cluster) reservePorts() error {
	for _, p := range c.ports.all() {
		reserved, err := reservePort()
		if err != nil {
			return err
		}
		*p = reserved
	}
	return nil
}

func (c *Cluster) file(name string) string { return filepath.Join(c.Dir, name) }

// start runs the servers, each once the one it needs is ready.
func (c *Cluster) start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	return c.startServers(ctx)
}

// startServers runs everything but etcd.
func (c *Cluster) startServers(ctx context.Context) error {
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	if !c.options.ControllerManager {
		return nil
	}
	if err := c.startControllerManager(ctx); err != nil || !c.options.Pods {
		return err
	}
	return c.startPods(ctx)
}

// PIDs are the processes of etcd and kube-apiserver, by name, for whoever measures
// them. A restart changes them.
func (c *Cluster) PIDs() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return map[string]int{"etcd": c.etcd.pid(), "kube-apiserver": c.apiserver.pid()}
}

// Pause freezes kube-apiserver: connections are accepted by the kernel and
// never answered, as from a cluster that hangs.
func (c *Cluster) Pause() error {
	c.meddled.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.apiserver.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return awaitStopped(c.apiserver.pid())
}

// Resume ends a Pause.
func (c *Cluster) Resume() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiserver.signal(syscall.SIGCONT)
}

// StopServers ends kube-apiserver and kube-controller-manager, as of a cluster
// that is down: connections are refused. The data stays.
func (c *Cluster) StopServers() error {
	c.meddled.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopServers()
}

// StartServers starts what StopServers ended, at the same address.
func (c *Cluster) StartServers(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return fmt.Errorf("start the servers of cluster %s: it was stopped for good", c.Name)
	}
	return c.startServers(ctx)
}

// KillAPIServer ends kube-apiserver at once, as a crash does; all else goes on.
func (c *Cluster) KillAPIServer() error {
	c.meddled.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiserver.kill()
}

// StartAPIServer starts it again, at the same address.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.startAPIServer(ctx)
}

// Restart is StopServers and then StartServers.
func (c *Cluster) Restart(ctx context.Context) error {
	if err := c.StopServers(); err != nil {
		return err
	}
	return c.StartServers(ctx)
}

func (c *Cluster) stopServers() error {
	var errs []error
	for _, p := range []**process{&c.kwok, &c.scheduler, &c.managers, &c.apiserver} {
		if *p != nil {
			errs = append(errs, (*p).stop())
			*p = nil
		}
	}
	return errors.Join(errs...)
}

// Stop ends all servers of the cluster and frees its ports. It may be called
// more than once, and on a cluster that failed to start.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true
	errs := []error{c.stopServers()}
	if c.etcd != nil {
		errs = append(errs, c.etcd.stop())
	}
	for _, p := range c.ports.all() {
		if *p != nil {
			(*p).release()
		}
	}
	if c.ownDir {
		errs = append(errs, os.RemoveAll(c.Dir))
	}
	return errors.Join(errs...)
}

// Logs returns the end of each server's log, for a report of a failure.
func (c *Cluster) Logs() string {
	var text string
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
		if path := c.file(name + ".log"); fileExists(path) {
			text += fmt.Sprintf("--- %s of %s\n%s\n", name, c.Name, logTail(path))
		}
	}
	return text
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
