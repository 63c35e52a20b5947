package wire

import (
	"net/url"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// InstructionsV1Path is the route that agents of the first form poll: what
// they owe, as a list of Reservation.
const InstructionsV1Path = "/api/v1/instructions"

// InstructionsPath is the route of a cluster's Instructions. Query parameters:
// `since` is the version at hand, `wait` ("30s", at most a minute) how long to
// wait for another one; 304 says that there is none yet. `after` is the highest Seq
// at hand: a replica that has not read the ledger so far waits until it has.
func InstructionsPath(cluster string) string {
	return "/api/v2/clusters/" + url.PathEscape(cluster) + "/instructions"
}

// Instructions are all that the ledger says of one cluster: a full list each
// time, so that nothing can be missed. They hold what the remote has
// acknowledged and nothing else.
type Instructions struct {
	// Version names the content: equal lists have equal versions, whichever
	// daemon gives them.
	Version string `json:"version"`
	// Fleet is the id of the fleet whose contracts these are, "" where it has none:
	// slices of others are not this agent's to answer.
	Fleet string `json:"fleet,omitempty"`
	// Ledger is the commit on which the lists stand. Later commits that change
	// nothing of them give no new version.
	Ledger string `json:"ledger,omitempty"`
	// Seq is that commit's number on the ledger, 0 where it has none: an agent never
	// goes back behind the highest that it was told.
	Seq uint64 `json:"seq,omitempty"`
	// At is that commit's time, which never runs backwards along a ledger: of
	// the lists of two daemons the later one counts.
	At v1alpha1.Time `json:"at,omitzero"`
	// Provide are the contracts that this cluster must honour; a slice of any
	// other name is owed nothing.
	Provide []Instruction `json:"provide"`
	// Consume are the contracts that appear in this cluster.
	Consume []Instruction `json:"consume"`
	// Deliver: the cluster's agent is to apply its manifests (delivery: agent).
	Deliver bool `json:"deliver,omitempty"`
	// Requests are the reservations that this cluster asked for, also those
	// that wait, are done or have failed.
	Requests []RequestState `json:"requests"`
	// News of what holds no contract yet, or of money: what the cluster's people
	// are told as Events, oldest first.
	News []News `json:"news,omitempty"`
	// Traces are those in which contracts of Provide are on their way (until Active), by
	// contract, each as W3C's traceparent. They are no part of what Version names.
	Traces map[string]string `json:"traces,omitempty"`
}

// News is one thing that became of an intent, of a tenant's budget, or (with no
// tenant) of the cluster itself.
type News struct {
	// ID names it: the same again has the same. It is hexadecimal.
	ID string        `json:"id"`
	At v1alpha1.Time `json:"at"`
	// Tenant, and the intent if it is of one.
	Tenant string `json:"tenant"`
	Intent string `json:"intent,omitempty"`
	// Reason is a word in CamelCase, Text a sentence.
	Reason string `json:"reason"`
	Text   string `json:"text"`
	// Warning: somebody has to do something.
	Warning bool `json:"warning,omitempty"`
}

// Instruction is one held contract as the agents on either side need it.
type Instruction struct {
	// Contract and Slice are names; the slice's is the contract's own unless it
	// was claimed warm.
	Contract string `json:"contract"`
	Slice    string `json:"slice"`
	// Tenant and Intent that it serves; Request is true when the intent came
	// through the API.
	Tenant  string `json:"tenant"`
	Intent  string `json:"intent"`
	Request bool   `json:"request,omitempty"`
	// Consumer and Provider are cluster ids, with their ids in Liqo and the
	// endpoints of their API servers as far as known.
	Consumer         string `json:"consumer"`
	ConsumerLiqoID   string `json:"consumerLiqoID"`
	ConsumerEndpoint string `json:"consumerEndpoint,omitempty"`
	Provider         string `json:"provider"`
	ProviderLiqoID   string `json:"providerLiqoID"`
	ProviderEndpoint string `json:"providerEndpoint,omitempty"`
	// Flavor of the provider and class of the slice.
	Flavor string `json:"flavor"`
	Class  string `json:"class"`
	// Resources are what to grant, exactly, in the names of the slice.
	Resources v1alpha1.Resources    `json:"resources"`
	GPUs      *v1alpha1.ContractGPU `json:"gpus,omitempty"`
	// Nodes of the provider on which it lies, where the contract names them.
	Nodes []v1alpha1.ContractNode `json:"nodes,omitempty"`
	// Phase, with its reason as a code, a message for people, and since when.
	// Releasing is still to be honoured until the slice is gone. Older daemons have
	// both in Reason, "<reason>: <message>".
	Phase   v1alpha1.Phase `json:"phase"`
	Reason  string         `json:"reason,omitempty"`
	Message string         `json:"message,omitempty"`
	Since   v1alpha1.Time  `json:"since"`
	Term    v1alpha1.Term  `json:"term"`
	Stage   v1alpha1.Stage `json:"stage,omitempty"`
	// Priority of the intent.
	Priority int32 `json:"priority,omitempty"`
}

// Why is the instruction's reason in one line: "<reason>: <message>".
func (i *Instruction) Why() string {
	return (&v1alpha1.ContractStatus{Reason: i.Reason, Message: i.Message}).Why()
}

// RequestState is where a reservation stands that the cluster asked for.
type RequestState struct {
	// ID of the reservation, Key the idempotency key it was asked with.
	ID  string `json:"id"`
	Key string `json:"key,omitempty"`
	// State, code and words of the intent; contracts are those of Consume.
	State   v1alpha1.IntentPhase `json:"state"`
	Reason  string               `json:"reason,omitempty"`
	Message string               `json:"message,omitempty"`
}
