package liqo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/tools"
)

// look is how often Deployments are looked at, pause how long one that ended
// stays down.
const (
	look  = 100 * time.Millisecond
	pause = time.Second
)

// kubelets keeps a process for each Deployment of a virtual kubelet.
type kubelets struct {
	liqo   *Liqo
	path   string
	cancel context.CancelFunc
	done   sync.WaitGroup
	byName map[string]*kubelet
	errs   []error
}

// kubelet is one virtual kubelet.
type kubelet struct {
	args    []string
	of      types.UID // its Deployment, which may be deleted and made again between two looks
	program *env.Program
	again   time.Time
	port    string
	free    func()
}

func watchKubelets(l *Liqo) (*kubelets, error) {
	path, err := tools.Find(context.Background(), "liqo-virtual-kubelet", l.Progress)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &kubelets{liqo: l, path: path, cancel: cancel, byName: map[string]*kubelet{}}
	k.done.Go(func() { k.run(ctx) })
	return k, nil
}

func (k *kubelets) run(ctx context.Context) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var list appsv1.DeploymentList
		if err := k.liqo.client.List(ctx, &list); err != nil {
			continue // the cluster may be down, and its kubelets live on
		}
		k.follow(ctx, list.Items)
	}
}

// follow brings the processes in line with what Deployments there are.
func (k *kubelets) follow(ctx context.Context, all []appsv1.Deployment) {
	wanted := map[string]bool{}
	for i := range all {
		d := &all[i]
		if d.DeletionTimestamp != nil || !isKubelet(d.Spec.Template.Spec) {
			continue
		}
		name := d.Namespace + "/" + d.Name
		wanted[name] = true
		if err := k.ensure(ctx, name, d); err != nil && ctx.Err() == nil {
			k.errs = append(k.errs, fmt.Errorf("virtual kubelet %s: %w", name, err))
		}
	}
	for name, one := range k.byName {
		if !wanted[name] {
			one.end()
			one.free()
			delete(k.byName, name)
		}
	}
}

func isKubelet(pod corev1.PodSpec) bool {
	return len(pod.Containers) > 0 && slices.ContainsFunc(pod.Containers[0].Command, func(s string) bool { return path.Base(s) == "virtual-kubelet" })
}

// ensure starts a kubelet that does not run, or runs with other arguments or for
// another Deployment.
func (k *kubelets) ensure(ctx context.Context, name string, d *appsv1.Deployment) error {
	one := k.byName[name]
	if one == nil {
		address, free, err := env.ReserveAddress()
		if err != nil {
			return err
		}
		one = &kubelet{port: strconv.Itoa(portOf(address)), free: free}
		k.byName[name] = one
	}
	pod := d.Spec.Template.Spec
	node := strings.TrimPrefix(d.Name, "vk-")
	values := map[string]string{"POD_IP": "127.0.0.1", "POD_NAME": d.Name, "POD_NAMESPACE": d.Namespace, "VIRTUALNODE_NAME": node}
	args := append(expand(pod.Containers[0].Args, values), "--listen-port="+one.port)
	if one.program != nil && one.of == d.UID && slices.Equal(args, one.args) {
		select {
		case <-one.program.Done():
			one.program, one.again = nil, time.Now().Add(pause)
		default:
			return nil
		}
	}
	if time.Now().Before(one.again) {
		return nil
	}
	one.end()
	kubeconfig, err := k.liqo.kubeconfig(ctx, d.Namespace, pod.ServiceAccountName)
	if err != nil {
		one.again = time.Now().Add(pause)
		return nil // its ServiceAccount is not there yet
	}
	one.args, one.of = args, d.UID
	one.program, err = env.StartProgramWith(append(environ(values), "KUBECONFIG="+kubeconfig, env.SeldomCollected), d.Name, k.liqo.Dir, k.path, args...)
	return err
}

// end kills the process, as a kubelet's end of a pod without grace.
func (one *kubelet) end() {
	if one.program != nil {
		_ = one.program.Kill()
		one.program = nil
	}
}

func (k *kubelets) stop() error {
	k.cancel()
	k.done.Wait()
	for _, one := range k.byName {
		one.end()
		one.free()
	}
	return errors.Join(k.errs...)
}

// portOf is the port of an address that was reserved.
func portOf(address string) int {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		panic(err)
	}
	return n
}
