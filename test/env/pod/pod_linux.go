package pod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetbroker/fleetbroker/test/env"
)

// tokenDir is where a pod has the token of its account.
const tokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Options say which workload's container runs.
type Options struct {
	Cluster *env.Cluster
	// Kind is "StatefulSet" or "Deployment". Its template has one container.
	Kind, Namespace, Name string
	// Pod is the pod's name.
	Pod string
	// Program is the file that the image would hold, linked statically.
	Program string
	// Flags are this machine's values for arguments --name=value of the template, which
	// must all be there.
	Flags map[string]string
	// Dir gets the root file system and the log; it is made.
	Dir string
}

// Start runs the workload's container. It is ended by Stop of what is returned, and with
// the calling process.
func Start(ctx context.Context, o Options) (*env.Program, error) {
	p, err := start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start pod %s of %s: %w", o.Pod, o.Cluster.Name, err)
	}
	return p, nil
}

func start(ctx context.Context, o Options) (*env.Program, error) {
	client, err := kubernetes.NewForConfig(o.Cluster.Config)
	if err != nil {
		return nil, err
	}
	spec, err := template(ctx, client, o)
	if err != nil {
		return nil, err
	}
	if len(spec.Containers) != 1 {
		return nil, fmt.Errorf("the template has %d containers, want one", len(spec.Containers))
	}
	root := filepath.Join(o.Dir, "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	c := spec.Containers[0]
	writable, err := mount(ctx, client, o, root, spec)
	if err != nil {
		return nil, err
	}
	environment, err := o.account(ctx, root, spec.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	args, variables, err := o.command(c)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(o.Program)
	program, err := os.ReadFile(o.Program)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(root, name), program, 0o755); err != nil { //nolint:gosec // it is run
		return nil, err
	}
	if err := hosts(root); err != nil {
		return nil, err
	}
	if err := own(root); err != nil {
		return nil, err
	}
	return env.StartContainer(env.Container{
		Name: o.Pod, Dir: o.Dir, Root: root, Writable: writable,
		Args: append([]string{"/" + name}, args...), Env: append(environment, variables...),
	})
}

// template is the workload's pod.
func template(ctx context.Context, client kubernetes.Interface, o Options) (corev1.PodSpec, error) {
	switch o.Kind {
	case "StatefulSet":
		w, err := client.AppsV1().StatefulSets(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return corev1.PodSpec{}, err
		}
		spec := w.Spec.Template.Spec
		for _, claim := range w.Spec.VolumeClaimTemplates {
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}})
		}
		return spec, nil
	case "Deployment":
		w, err := client.AppsV1().Deployments(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
		if err != nil {
			return corev1.PodSpec{}, err
		}
		return w.Spec.Template.Spec, nil
	}
	return corev1.PodSpec{}, fmt.Errorf("kind %q is neither StatefulSet nor Deployment", o.Kind)
}

// mount makes the volumes, and returns those that may be written to.
func mount(ctx context.Context, client kubernetes.Interface, o Options, root string, spec corev1.PodSpec) (writable []string, err error) {
	for _, m := range spec.Containers[0].VolumeMounts {
		at := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if at < 0 {
			return nil, fmt.Errorf("no volume %q for %s", m.Name, m.MountPath)
		}
		dir := filepath.Join(root, m.MountPath)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		switch v := spec.Volumes[at]; {
		case v.Secret != nil:
			secret, err := client.CoreV1().Secrets(o.Namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
			if err != nil {
				return nil, fmt.Errorf("mount %s: %w", m.MountPath, err)
			}
			for name, content := range secret.Data {
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o440); err != nil { //nolint:gosec // as a kubelet does
					return nil, err
				}
			}
		case v.EmptyDir != nil, v.PersistentVolumeClaim != nil:
			writable = append(writable, m.MountPath)
		default:
			return nil, fmt.Errorf("volume %q of %s is of a kind that is not made here", v.Name, m.MountPath)
		}
	}
	return writable, nil
}

// account mounts the token of the pod's account, and returns the variables that name the
// API server.
func (o Options) account(ctx context.Context, root, name string) ([]string, error) {
	kubeconfig, err := o.Cluster.KubeconfigForServiceAccount(ctx, o.Namespace, name)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(root, tokenDir), 0o755); err != nil {
		return nil, err
	}
	for file, content := range map[string]string{"token": config.BearerToken, "ca.crt": string(config.CAData), "namespace": o.Namespace} {
		if err := os.WriteFile(filepath.Join(root, tokenDir, file), []byte(content), 0o440); err != nil { //nolint:gosec // as a kubelet does
			return nil, err
		}
	}
	u, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		return nil, err
	}
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}, nil
}

// command is the container's arguments, with this machine's flags, and its environment.
func (o Options) command(c corev1.Container) (args, environment []string, err error) {
	var expand []string
	for _, e := range c.Env {
		value := e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			value = map[string]string{"metadata.name": o.Pod, "metadata.namespace": o.Namespace}[e.ValueFrom.FieldRef.FieldPath]
		}
		environment = append(environment, e.Name+"="+value)
		expand = append(expand, "$("+e.Name+")", value)
	}
	left := maps.Clone(o.Flags)
	for _, a := range c.Args {
		name, _, _ := strings.Cut(a, "=")
		if value, ok := o.Flags[name]; ok {
			delete(left, name)
			a = name + "=" + value
		}
		args = append(args, strings.NewReplacer(expand...).Replace(a))
	}
	if len(left) > 0 {
		return nil, nil, fmt.Errorf("the template has no arguments %v: it has %q", slices.Sorted(maps.Keys(left)), c.Args)
	}
	return args, environment, nil
}

// hosts writes the names that a kubelet gives each pod.
func hosts(root string) error {
	if err := os.MkdirAll(filepath.Join(root, "etc"), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "etc", "hosts"), []byte("127.0.0.1\tlocalhost\n"), 0o644) //nolint:gosec // as a kubelet does
}

// own gives all files to the user of images.
func own(root string) error {
	if os.Getuid() != 0 {
		return nil
	}
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, env.ContainerUser, env.ContainerUser))
	})
}
