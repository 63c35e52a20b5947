package draft

import (
	"slices"

	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Base is what a draft leaves to the next round's.
type Base struct {
	Names     *quantity.Names
	Inventory *inventory.Inventory
	// Mapped are the remote namespaces of the ledger's contracts.
	Mapped Mappings
	// Marks are the providers that are kept out of the market for their refusals.
	Marks map[string]RefusalMark
	// Tally is what the ledger holds, as the round begins.
	*Tally
	// Intents by tenant and name, those of warm pools among them.
	Intents []*model.Intent
	// Nothing are the tasks of replicas that have nothing, by number: all jobs
	// share them, and nobody changes them.
	Nothing []Task
}

// Find is the intent of a name, nil when there is none.
func (b *Base) Find(tenant, name string) *model.Intent {
	i, ok := b.PlaceOf(tenant, name)
	if !ok {
		return nil
	}
	return b.Intents[i]
}

// PlaceOf is where among the intents the first of a name is, or would be.
func (b *Base) PlaceOf(tenant, name string) (at int, found bool) {
	return slices.BinarySearchFunc(b.Intents, [2]string{tenant, name}, func(in *model.Intent, k [2]string) int {
		return CompareNames(in.Metadata.Namespace, in.Metadata.Name, k[0], k[1])
	})
}

// OfferOf is the offer that a contract is placed on, nil when it is in no market.
func (b *Base) OfferOf(c *v1alpha1.Contract) *inventory.Offer {
	return b.Inventory.Of(c)
}

// Nothings are the tasks of n replicas from one on that have nothing. They are
// shared: nobody may change them.
func (b *Base) Nothings(from int32, n int) []Task {
	to := int(from) + n
	if to > len(b.Nothing) {
		list := make([]Task, max(to, 2*len(b.Nothing), 16))
		for i := range list {
			list[i] = Task{Kind: TaskFresh, Replica: int32(i)}
		}
		b.Nothing = list
	}
	return b.Nothing[from:to:to]
}

// IsNothing reports whether tasks are a part of the shared list.
func (b *Base) IsNothing(tasks []Task) bool {
	if len(tasks) == 0 {
		return false
	}
	at := int(tasks[0].Replica)
	return at < len(b.Nothing) && &tasks[0] == &b.Nothing[at]
}

// Fresh are those of tasks that place what has nothing.
func (b *Base) Fresh(tasks []Task) []Task {
	if b.IsNothing(tasks) {
		return tasks
	}
	return slices.DeleteFunc(slices.Clone(tasks), func(t Task) bool { return t.Kind != TaskFresh })
}
