package v1alpha1

// Demand is what a consumer's agent says of the pods that use contracts or wait
// for them. It travels beside the flavors in the agent's report and is never
// written to a file.
type Demand struct {
	// Pending are the pods that tolerate an intent's taint and that the scheduler found no room for.
	Pending []PendingPods `json:"pending,omitempty"`
	// Nodes counts the pods on each virtual node, those of DaemonSets left out, by the node's name, which is its slice's.
	Nodes map[string]int64 `json:"nodes,omitempty"`
}

// PendingPods are pods of one namespace that wait for the same.
type PendingPods struct {
	// Namespace they are in.
	Namespace string `json:"namespace"`
	// Intents they may use, as IntentValues, sorted.
	Intents []string `json:"intents"`
	// Requests of each pod, under the names that Kubernetes has for them.
	Requests Resources `json:"requests"`
	// Pods is how many there are.
	Pods int64 `json:"pods"`
}

// DemandSeen is a Demand as the daemon has followed it.
type DemandSeen struct {
	// Pending pods of the newest report.
	Pending []PendingPods
	// Nodes are the virtual nodes of the newest report, by name.
	Nodes map[string]NodeUse
}

// NodeUse is how a virtual node is used.
type NodeUse struct {
	// Pods on it.
	Pods int64
	// IdleSince is when it was first reported without pods, by the daemon's clock; zero while it has some.
	IdleSince Time
}
