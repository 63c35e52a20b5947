package v1alpha1

// Limits bound what one intent or tenant may ask for, so that no file stops the
// fleet. They hold without any quota; a fleet raises them by name.
type Limits struct {
	// Replicas of one intent at most (default 10000).
	Replicas int64 `json:"replicas,omitempty"`
	// Contracts of one tenant at most (default 1000): what a round writes of a tenant, and what a start reads, grows with them, some 0.4 ms of processor time each. What stands above it is named and kept to its end; nothing new is placed.
	Contracts int64 `json:"contracts,omitempty"`
	// Intents of one tenant at most (default 100000).
	Intents int64 `json:"intents,omitempty"`
	// Files in the directories of one tenant at most (default 200000). Of them at most 500 may be kustomizations.
	Files int64 `json:"files,omitempty"`
	// Bytes of all files of one tenant at most (default 512Mi).
	Bytes *Quantity `json:"bytes,omitempty"`
	// Conditions are the units of work that placement.where of all intents may cost in one round (default 100000000, some 20 s of processor time at worst): the worst case of an expression times all offers of the market, for each alternative; intents that ask for the same pay once. Whoever has no turn is queued for one of the next rounds (ConditionsBudget): tenants take turns, what is held costs nothing.
	Conditions int64 `json:"conditions,omitempty"`
	// Work is the units that the intents of one tenant may cost in one round (default 2000000, about half a second of processor time): each kind of request costs one for every offer of the market, each intent 100, each replica that it wants 400, each part that spec.split may make of it five for every offer. So do searches of schedule.book, placement.together and preemption.preempts, at the rates of docs/limits.md. All tenants together have 20 times as much. Whoever has no turn is queued for one of the next rounds (WorkBudget where its tenant has used up its own, Planning where all have); what is held costs nothing.
	Work int64 `json:"work,omitempty"`
}

// The defaults of Limits.
const (
	DefaultReplicas   = 10_000
	DefaultContracts  = 1000
	DefaultIntents    = 100_000
	DefaultFiles      = 200_000
	DefaultBytes      = Quantity("512Mi")
	DefaultConditions = 100_000_000
	DefaultWork       = 2_000_000
)

// Filled are the limits with the defaults for what is left open.
func (l Limits) Filled() Limits {
	for _, f := range []struct {
		field     *int64
		otherwise int64
	}{
		{&l.Replicas, DefaultReplicas}, {&l.Contracts, DefaultContracts}, {&l.Intents, DefaultIntents},
		{&l.Files, DefaultFiles}, {&l.Conditions, DefaultConditions},
		{&l.Work, DefaultWork},
	} {
		if *f.field == 0 {
			*f.field = f.otherwise
		}
	}
	if l.Bytes == nil {
		bytes := DefaultBytes
		l.Bytes = &bytes
	}
	return l
}
