// Package agent is what runs in fleet-agent, one in each cluster: it makes
// flavors of the cluster's labelled nodes and reports them to every broker,
// waits for the brokers' instructions, and carries them out.
//
//	Nodes, Pods ────┐  watch                           ┌──► broker 1  each with its own
//	Quotas, Slices ─┴─► Collect ──► []Flavor ──► sender┼──► broker 2  loop, generation
//	                    pure         ~200 ms after     └──► …         and back-off
//	                                 the last change
//
//	                                     brokers' instructions (long poll)
//	                                                    │ the furthest along counts
//	           ┌────────────────────────────────────────┼───────────────────┐
//	           ▼                                        ▼                   ▼
//	enforce: ResourceSlices          request: ResourceRequests      mirror: what is
//	of class fleetbroker             become reservations            offered, promised
//	are granted as the ledger says   and are released               and held
//
// Where the cluster's file says delivery: agent it also applies the cluster's
// manifests, with the code by which the daemon does (package delivery), and tells
// every broker what it sees of them (delivering.go). Nothing is corrected before
// the repository was asked, through a broker.
//
// With --webhook-bind-address every replica also answers admission reviews (package
// admission/hook), whether it holds the Lease or not.
//
// Each of the three starts once its kinds are served and RBAC allows it, and
// says what is missing; an agent that may only read reports all the same.
// Without enforcement flavors are of Liqo's class default, with it of class
// fleetbroker.
//
// # What is offered
//
// A node labelled fleetbroker.io/pool=<flavor> belongs to the flavor of that
// name; one labelled node-role.fluidos.eu/resources=true without it, to a
// flavor named after its shape. Virtual nodes (liqo.io/type=virtual-node) are
// never offered on. A flavor is homogeneous: nodes of one pool that differ in
// what an intent can ask for (facts) make flavors of their own, named with a
// suffix; the oldest node's kind keeps the bare name, so that no node that
// joins renames what others have reserved. Accelerators of several kinds on the
// same nodes (MIG profiles) make a flavor each and name a common pool.
//
// # Arithmetic
//
//	capacity = Σ allocatable of nodes in service
//	         + Σ min(allocatable, what runs there) of nodes that are not
//	used     = Σ requests of the provider's own pods on the nodes
//	held[c]  = max(granted to slice c, Σ requests of c's pods on the nodes)
//
// A node is in service while it is ready, schedulable and not being deleted.
// Out of service it adds exactly what runs there, so that nothing new can be
// sold on it and nothing that is sold looks oversold. A pod counts from being
// bound to a node until it has ended or is gone. Requests are the scheduler's:
// k8s.io/component-helpers/resource.PodRequests (init containers, sidecars,
// overhead). What is held under a slice is told as long as a Quota or a pod of
// it is there, also when its flavor is withdrawn: the flavor then stays,
// cordoned, with a capacity of what is held. Keys of held are the names of
// slices, which are those of their contracts unless a slice was claimed warm.
// A slice that no contract stands for, such as one of class default by which a
// consumer goes past the ledger, is told the same way: brokers count names they
// do not know against the capacity like the provider's own pods.
//
// With ReportNodes, fleet-agent's default, flavors with accelerators are told node by node
// too, by salted hash, with what slices hold on which (package bynode): by their pods, and
// by the contracts that name nodes. The agent labels those nodes
// fleetbroker.io/node=<hash>; where it may not, it logs that and pools are told alone. A contract whose piece of a node own pods took is refused with the hash.
//
// Where a flavor is sold more than once within a risk, what each contract takes
// of what it holds is told too, averaged (package usage).
//
// Administrators cordon, drain or overcommit a whole flavor by a note on its
// nodes (cordon.go), a node with kubectl cordon, a cluster in its file in the fleet
// repo, and refuse a contract by an annotation (package mirror).
//
// While the cluster's API server does not answer, all flavors are cordoned: what
// is known of them is old, and no slice could be granted.
//
// One agent runs in a cluster. Two would each go above the other's epoch, and
// every report would be a full one.
//
// # Concurrency
//
// Collect is pure and called from one goroutine, which owns its Memory; labels are written
// by another, so that an API server that hangs keeps no report back. Senders
// share nothing but the newest encoded list, which is never modified.
//
// # Reports
//
// A sender numbers its reports <epoch>.<n>. It sends the full list after a change and a
// report without a body while nothing changes:
//
//	sequenceDiagram
//	  participant A as agent
//	  participant B as broker
//	  A->>B: PUT flavors 7.1, full list
//	  B-->>A: 204
//	  A->>B: PUT flavors 7.1, no body (30 s later)
//	  B-->>A: 204
//	  Note over B: restarts
//	  A->>B: PUT flavors 7.1, no body
//	  B-->>A: 412 UnknownBase
//	  A->>B: PUT flavors 7.1, full list
//	  B-->>A: 204
//
// 409 StaleEpoch names the newest generation known; the agent goes on with an epoch above
// it.
//
// # What it carries out
//
//   - enforce: is Liqo's class controller for fleetbroker: grants a ResourceSlice exactly
//     what its contract says, denies others, withdraws
//
//   - request: makes reservations of ResourceRequests, and releases them
//
//   - usage: estimates what contracts take of what they hold, where a flavor is sold
//     within a risk
//
//   - mirror: shows Advertisement, ProviderInstruction and ReservationInstruction, and
//     tells what becomes of contracts as Events
//
//     sequenceDiagram
//     participant R as consumer
//     participant B as broker
//     participant P as provider's agent
//     R->>B: POST reservations (or a commit to the fleet repo)
//     B->>B: contract committed and pushed
//     B-->>P: instructions
//     R->>P: ResourceSlice, by Liqo
//     P->>P: contract stands? not larger? room left?
//     P-->>R: status: resources, nodeSelector, nodeLabels, Accepted
//     B-->>P: contract Releasing
//     P-->>R: GPUs and pods 0, CPU and memory kept, later Denied
//
// # What nodes say
//
//   - pool: label fleetbroker.io/pool=<flavor>, or node-role.fluidos.eu/resources=true
//   - GPU: GPU feature discovery's labels (nvidia.com/gpu.*), AMD's and Intel's; the
//     annotations gpu.fluidos.eu/* go before them
//   - price: annotations cost.fluidos.eu/hourly-rate (of the node, spread over its cards
//     or cores) and currency
//   - place: annotations location.fluidos.eu/{region,zone,country,city}, else the labels
//     topology.kubernetes.io/{region,zone}
//   - latency: annotation network.fluidos.eu/latency-ms
//   - cordon, drain: annotations fleetbroker.io/cordon: "true" and fleetbroker.io/drain:
//     <RFC 3339>; one node of the flavor is enough
//   - overcommit: annotation fleetbroker.io/overcommit: "cpu=1.5 maxRisk=0.01": ratios of
//     CPU, memory, pods and storage, and the accepted risk; the lowest that a node of the
//     flavor names
//   - partition: annotation fleetbroker.io/partition: "min gpu=2 cpu=16; step gpu=2": the
//     smallest size sold, and by what sizes grow
//   - price windows: annotation fleetbroker.io/price-windows: "Sat,Sun 00:00-24:00
//     gpu=0.80; 20:00-06:00 Europe/Rome gpu=1.20": prices of parts of the week, in the
//     currency of the node's price
//   - labels of the flavor: every other annotation of
//     {gpu,cost,location,network,provider,workload}.fluidos.eu
//
// Annotations are read with dashes and with underscores.
//
// # Tests
//
// go test ./internal/agent has tables, a virtual clock for the senders, and random
// clusters for the arithmetic. go test -tags e2e ./test/e2e/agent runs the agent on a real
// API server, go test -tags e2e ./test/e2e/enforce agents of both sides with the daemon:
// grants, denials, requests, a killed agent, a cut network.
package agent
