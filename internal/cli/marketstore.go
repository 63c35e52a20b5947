package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetbroker/fleetbroker/internal/market/store"
	"github.com/fleetbroker/fleetbroker/internal/market/store/kube"
)

// storeFlags say where the market lies that replicas share.
type storeFlags struct {
	kind       string
	kubeconfig string
	namespace  string
}

// The kinds of store.
const (
	storeAuto       = "auto"
	storeMemory     = "memory"
	storeKubernetes = "kubernetes"
)

func (f *storeFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.kind, "market-store", storeAuto, "where what agents report is kept: memory (one daemon alone), kubernetes (objects that all replicas share), or auto: kubernetes in a pod whose cluster has the definitions")
	fs.StringVar(&f.kubeconfig, "market-kubeconfig", "", "kubeconfig of the cluster with the market's objects (default: the pod's own)")
	fs.StringVar(&f.namespace, "market-namespace", "", "namespace of the market's objects (default: the pod's own)")
}

// cluster is where the objects lie; nil in no cluster.
func (f *storeFlags) cluster() (*rest.Config, string, error) {
	if f.kubeconfig == "" {
		config, namespace, err := ownCluster()
		if f.namespace != "" {
			namespace = f.namespace
		}
		return config, namespace, err
	}
	if f.namespace == "" {
		return nil, "", usagef("--market-kubeconfig needs --market-namespace: the namespace of the market's objects")
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, "", fmt.Errorf("read --market-kubeconfig: %w", err)
	}
	return config, f.namespace, nil
}

// openStore is the store of a daemon, which has the replica's name there.
func (f *storeFlags) open(ctx context.Context, d *daemon, identity string) (store.Store, error) {
	if err := oneOf("market-store", f.kind, storeAuto, storeMemory, storeKubernetes); err != nil {
		return nil, err
	}
	memory := &store.Memory{Market: d.market, Replica: identity}
	if f.kind == storeMemory {
		return memory, nil
	}
	config, namespace, err := f.cluster()
	switch {
	case err != nil:
		return nil, err
	case config == nil && f.kind == storeKubernetes:
		return nil, usagef("--market-store kubernetes: this is no pod of a cluster; give --market-kubeconfig and --market-namespace")
	case config == nil:
		return memory, nil
	}
	api, err := kube.New(config, namespace)
	if err != nil {
		return nil, err
	}
	// Where it cannot be asked it may be there: nobody is heard before it answers.
	switch there, err := api.Installed(ctx); {
	case err != nil:
		d.log.Warn("the cluster does not say whether it has the market's objects; they are waited for", "error", err)
	case !there && f.kind == storeKubernetes:
		return nil, hinted(errors.New("the cluster does not serve the kinds of market.fleetbroker.io"), "kubectl apply -f install/broker/crds.yaml")
	case !there:
		d.log.Warn("the cluster does not serve the kinds of market.fleetbroker.io: the market is kept in memory, for one daemon alone", "remedy", "kubectl apply -f install/broker/crds.yaml")
		return memory, nil
	}
	life := make([]byte, 8)
	_, _ = rand.Read(life) // it does not fail
	return store.NewShared(store.Options{
		API: api, Market: d.market, Replica: objectName(identity), Life: hex.EncodeToString(life),
		Observer: d.metrics, Log: d.log, Now: time.Now, // only what passes on it counts
	}), nil
}

// inObjectName are runs of what no object's name has.
var inObjectName = regexp.MustCompile(`[^a-z0-9.-]+`)

// objectName is a daemon's name as that of an object.
func objectName(identity string) string {
	name := strings.Trim(inObjectName.ReplaceAllString(strings.ToLower(identity), "-"), "-.")
	if len(name) > 200 {
		name = strings.TrimRight(name[:200], "-.")
	}
	return name
}

// identityOf is a daemon's name among others.
func identityOf(flag string) string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s-%s", host, flag)
}

// storeUp is the check of /readyz.
func (d *daemon) storeUp() error {
	if st := d.store.Status(); st.Cut != "" {
		return fmt.Errorf("the market's store is out of reach since %s: %s", st.Since.UTC().Format(time.RFC3339), st.Cut)
	}
	return nil
}
