// Package access finds the way to clusters: by kubeconfigs, in files or in Secrets of
// the daemon's own namespace.
//
// A kubeconfig may only do what its text says: it runs no program but those that are
// allowed by name (a flag of the daemon, never a file of the repository), names no file of
// this machine, leaves no certificate unchecked and follows no redirect. Tokens that end are renewed (package
// renew). A Secret is read only where its
// label names the cluster. Delivery, the agent and commands of people call it; values
// are not to be changed while they are used, and may be shared between goroutines.
package access

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/redirects"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access/renew"
	"github.com/fleetbroker/fleetbroker/internal/delivery/bulk"
)

// LabelCluster must be on a Secret that holds a kubeconfig, with the cluster's
// name: whoever may write Cluster files cannot point at any other Secret.
const LabelCluster = v1alpha1.Group + "/cluster"

// defaultKey is the key of a kubeconfig in a Secret that names none.
const defaultKey = "kubeconfig"

// Secrets reads Secrets of the daemon's own namespace.
type Secrets interface {
	// Secret returns data and labels of a Secret.
	Secret(ctx context.Context, name string) (data map[string][]byte, labels map[string]string, err error)
}

// KubernetesSecrets reads Secrets of one namespace of the cluster that the
// daemon runs in. It needs the verb get on secrets there.
type KubernetesSecrets struct {
	// Client of the daemon's own cluster.
	Client kubernetes.Interface
	// Namespace of the daemon.
	Namespace string
}

// Secret implements Secrets.
func (s KubernetesSecrets) Secret(ctx context.Context, name string) (map[string][]byte, map[string]string, error) {
	secret, err := s.Client.CoreV1().Secrets(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	return secret.Data, secret.Labels, nil
}

// Kubeconfigs reaches clusters by kubeconfig: from the Secret that a Cluster
// names, else from the file <cluster>.kubeconfig in a directory.
type Kubeconfigs struct {
	// Dir of kubeconfig files; may be empty.
	Dir string
	// Secrets; nil where the daemon does not run in a cluster.
	Secrets Secrets
	// Programs are the absolute paths that a kubeconfig may run for credentials (exec).
	Programs []string
	// Tokens renews tokens that end; nil renews none.
	Tokens *renew.Keeper
}

// Register declares the flags of Dir, whose help is given, and of Programs.
func (k *Kubeconfigs) Register(fs *pflag.FlagSet, dir string) {
	fs.StringVar(&k.Dir, "kubeconfigs-dir", k.Dir, dir)
	fs.StringSliceVar(&k.Programs, "kubeconfig-programs", k.Programs, "programs that kubeconfigs may run for credentials (exec), by absolute path, each with the arguments that it may have (* is any one); others are refused")
}

// RESTConfig implements delivery.Access.
func (k Kubeconfigs) RESTConfig(ctx context.Context, cluster *v1alpha1.Cluster) (*rest.Config, error) {
	name := cluster.Metadata.Name
	text, source, err := k.read(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("no kubeconfig of cluster %s: %w", name, err)
	}
	config, err := SafeRESTConfig(text, k.Programs...)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of cluster %s from %s: %w", name, source, err)
	}
	return k.Tokens.Config(ctx, name, config), nil
}

// Renew renews what is due of all kubeconfigs in Dir, at once and then every so often until
// the context ends: those of clusters too that nothing asks for a while.
func (k Kubeconfigs) Renew(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		files, _ := os.ReadDir(k.Dir) // who uses one says what is wrong with it
		for _, file := range files {
			if name, is := strings.CutSuffix(file.Name(), ".kubeconfig"); is {
				_, _ = k.RESTConfig(ctx, &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: name}})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k Kubeconfigs) read(ctx context.Context, cluster *v1alpha1.Cluster) (text []byte, source string, err error) {
	name := cluster.Metadata.Name
	if access := cluster.Spec.Access; access != nil && access.KubeconfigSecretRef != nil {
		ref := access.KubeconfigSecretRef
		if k.Secrets == nil {
			return nil, "", fmt.Errorf("it is in Secret %s, but the daemon does not run in a cluster: give --kubeconfigs-dir and take access out of clusters/%s.yaml", ref.Name, name)
		}
		data, labels, err := k.Secrets.Secret(ctx, ref.Name)
		if err != nil {
			return nil, "", fmt.Errorf("read Secret %s: %w", ref.Name, err)
		}
		if labels[LabelCluster] != name {
			return nil, "", fmt.Errorf("Secret %s is not meant for this cluster: label it %s=%s", ref.Name, LabelCluster, name)
		}
		entry := ref.Key
		if entry == "" {
			entry = defaultKey
		}
		if len(data[entry]) == 0 {
			return nil, "", fmt.Errorf("Secret %s has no key %s", ref.Name, entry)
		}
		return data[entry], "Secret " + ref.Name, nil
	}
	if k.Dir == "" {
		return nil, "", fmt.Errorf("set access.kubeconfigSecretRef in clusters/%s.yaml, or give --kubeconfigs-dir with a file %s.kubeconfig", name, name)
	}
	file := filepath.Join(k.Dir, filepath.Base(name)+".kubeconfig")
	text, err = os.ReadFile(file) //nolint:gosec // the operator named the directory, and the base name stays in it
	return text, file, err
}

// maxKubeconfig bounds a kubeconfig, in bytes. Three bytes of one can make an entry of some
// hundreds; a list of authorities takes tens of thousands.
const maxKubeconfig = 256 << 10

// SafeRESTConfig reads a kubeconfig that can only do what its text says: no
// programs that are run but those given, no files of this machine that are read, no
// certificate that goes unchecked, no redirect to another server. Errors are one line and
// repeat no credential.
func SafeRESTConfig(kubeconfig []byte, programs ...string) (*rest.Config, error) {
	if len(kubeconfig) > maxKubeconfig {
		return nil, fmt.Errorf("it has %d bytes, at most %d: leave the contexts of other clusters out (kubectl config view --raw --minify --flatten)", len(kubeconfig), maxKubeconfig)
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		// The parser's message may repeat parts of the text, and with it secrets.
		return nil, errors.New("it is not a kubeconfig")
	}
	if err := checkKubeconfig(config, programs); err != nil {
		return nil, errors.New(escape.Reason(err.Error())) // names are the text's own
	}
	out, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, errors.New(escape.Reason(err.Error()))
	}
	// The server limits its clients better than we can (priority and fairness).
	out.QPS = -1
	// Whoever asks with it: what the cluster answers is the cluster's.
	new(bulk.Bounds).On(out)
	out.Wrap(redirects.Refuse)
	return out, nil
}

// An address that cannot be used is not repeated: a password may be in it.
func checkKubeconfig(config *clientcmdapi.Config, programs []string) error {
	for name, user := range config.AuthInfos {
		if user.Exec != nil {
			if err := checkExec(name, user.Exec, programs); err != nil {
				return err
			}
		}
		switch {
		case user.Exec != nil && (user.Token != "" || user.Username != "" || user.Password != "" || len(user.ClientCertificateData) > 0 || len(user.ClientKeyData) > 0):
			return fmt.Errorf("user %.80s runs a program (exec) and has another credential too: keep one of them", name)
		case user.AuthProvider != nil:
			return fmt.Errorf("user %.80s uses an auth-provider: use a token or certificate in the text", name)
		case user.ClientCertificate != "" || user.ClientKey != "" || user.TokenFile != "":
			return fmt.Errorf("user %.80s names a file: put its content in the text (kubectl config view --raw --flatten)", name)
		}
	}
	for name, cluster := range config.Clusters {
		server, err := url.Parse(cluster.Server)
		switch {
		case cluster.CertificateAuthority != "":
			return fmt.Errorf("cluster %.80s names a file: put its content in the text (kubectl config view --raw --flatten)", name)
		case cluster.InsecureSkipTLSVerify:
			return fmt.Errorf("cluster %.80s does not verify the server (insecure-skip-tls-verify): give certificate-authority-data", name)
		case !strings.HasPrefix(cluster.Server, "https://"):
			return fmt.Errorf("cluster %.80s is not reached by https", name)
		case err != nil || server.Hostname() == "" || server.User != nil:
			return fmt.Errorf("cluster %.80s has a server that is not https://<host>[:<port>][/<path>]", name)
		}
		if cluster.ProxyURL == "" {
			continue
		}
		if proxy, err := url.Parse(cluster.ProxyURL); err != nil || proxy.Hostname() == "" || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
			return fmt.Errorf("cluster %.80s has a proxy-url that is not of the form http://<host>:<port>, https:// or socks5://", name)
		}
	}
	return nil
}

// checkExec lets a program run that is allowed by its path, and by its arguments where the
// list has some; it asks nobody anything, and gets the environment of this process and no
// other.
func checkExec(user string, exec *clientcmdapi.ExecConfig, programs []string) error {
	listed := slices.IndexFunc(programs, func(entry string) bool { return entry == exec.Command || pinned(entry)[0] == exec.Command })
	switch {
	case !filepath.IsAbs(exec.Command) || listed < 0:
		return fmt.Errorf("user %.80s runs the program %.80q (exec), which is not allowed here: use a token or certificate in the text, or name the program's path in --kubeconfig-programs", user, exec.Command)
	case !slices.ContainsFunc(programs, func(entry string) bool { return runs(entry, exec.Command, exec.Args) }):
		return fmt.Errorf("user %.80s runs the program %q with %d arguments that are not allowed here (they are not shown: a password may be among them): --kubeconfig-programs has %q", user, exec.Command, len(exec.Args), programs[listed])
	case len(exec.Env) > 0:
		return fmt.Errorf("user %.80s sets variables of a program's environment (exec.env): set them in the daemon's own", user)
	}
	exec.InteractiveMode = clientcmdapi.NeverExecInteractiveMode
	return nil
}

// AnyArgument stands in an entry of the allow list for one argument that is no flag.
const AnyArgument = "*"

// runs reports whether an entry of the allow list lets a program run with these arguments.
// A path alone lets it run with any.
func runs(entry, command string, args []string) bool {
	if entry == command {
		return true
	}
	want := pinned(entry)
	return want[0] == command && len(want) > 1 && slices.EqualFunc(want[1:], args, func(want, arg string) bool {
		return want == arg || want == AnyArgument && arg != "" && arg[0] != '-'
	})
}

// pinned are the words of an entry: a path, and arguments.
func pinned(entry string) []string {
	if words := strings.Fields(entry); len(words) > 0 {
		return words
	}
	return []string{""}
}
