package bynode

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// digits of a hash, of five bits each.
const digits = 13

// Hasher gives the nodes of one cluster their hashes.
type Hasher struct{ key []byte }

// NewHasher is a cluster's; salt is the UID of its Namespace kube-system.
func NewHasher(salt string) *Hasher { return &Hasher{[]byte(salt)} }

// Needs is what an agent has to be allowed for nodes to be told one by one: to label them
// (Labeler), and to read the salt (ReadHasher).
func Needs() []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{
		{Verb: "patch", Resource: "nodes"}, {Verb: "get", Resource: "namespaces", Name: metav1.NamespaceSystem},
	}
}

// ReadHasher is the Hasher of the cluster that r reads, with the salt that the cluster has.
func ReadHasher(ctx context.Context, r client.Reader) (*Hasher, error) {
	var system corev1.Namespace
	if err := r.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return nil, fmt.Errorf("read the salt of nodes' hashes: %w", err)
	}
	return NewHasher(string(system.UID)), nil
}

// Of is the hash of the node of a name, as onnodes.IsHash takes it.
func (h *Hasher) Of(node string) string {
	mac := hmac.New(sha256.New, h.key)
	mac.Write([]byte(v1alpha1.LabelNode + "\x00" + node)) // a hash never fails
	text := base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(mac.Sum(nil))
	return "n" + strings.ToLower(text[:digits])
}

// topologyKeys and topologyPrefixes are the labels that say where a node is.
var (
	topologyKeys = []string{
		"nvidia.com/gpu.clique", "ds.coreweave.com/nvlink.domain",
		"cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock", "cloud.google.com/gce-topology-host",
		"oci.oraclecloud.com/rdma.hpc_island_id", "oci.oraclecloud.com/rdma.network_block_id", "oci.oraclecloud.com/rdma.local_block_id",
		"ib.coreweave.cloud/fabric", "ib.coreweave.cloud/superpod", "ib.coreweave.cloud/leafgroup", "node.coreweave.cloud/rack",
	}
	topologyPrefixes = []string{
		"topology.kubernetes.io/", "network.topology.nvidia.com/", "fabric.topograph.run/", "accelerator.topograph.run/", "topology.k8s.aws/network-node-layer-",
	}
)

// IsTopology reports whether a node's label says where among its like the node is.
func IsTopology(key string) bool {
	if key == corev1.LabelTopologyRegion || key == corev1.LabelTopologyZone {
		return false
	}
	return slices.Contains(topologyKeys, key) || slices.ContainsFunc(topologyPrefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// maxTopology is how many such labels of a node are reported, the first by name.
const maxTopology = 16

// differing are the labels of topology in which hosts differ, in order.
func differing(hosts []Host) []string {
	type seen struct {
		value   string
		hosts   int
		differs bool
	}
	keys := map[string]*seen{}
	for i := range hosts {
		for key, value := range hosts[i].Labels {
			if !IsTopology(key) {
				continue
			}
			s := keys[key]
			if s == nil {
				s = &seen{value: value}
				keys[key] = s
			}
			s.hosts++
			s.differs = s.differs || s.value != value
		}
	}
	var out []string
	for key, s := range keys {
		if s.differs || s.hosts < len(hosts) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), maxTopology)]
}
