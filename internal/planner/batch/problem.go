package batch

import "github.com/fleetbroker/fleetbroker/internal/planner/quantity"

// Nowhere is the place of a seat that has none.
const Nowhere = -1

// Problem is a batch. Resources are numbered from 0; resource 0 is units of cards.
type Problem struct {
	// Pooled are the resources of which a place takes as much from its row's mates,
	// one entry for each resource.
	Pooled []bool
	Rows   []Row
	Kinds  []Kind
	Seats  []Seat
	// Accounts are what tenants may still spend in addition to what their seats do, so many
	// numbers each as a place charges.
	Accounts [][]int64
	// Domains are, for each kind of domain that groups may share or rules go by, the number
	// of that in which each row is, Nowhere for none.
	Domains [][]int32
	// Rules are on seats among themselves.
	Rules []Rule
	// Singly: of those of a group that follow some may have a place where others have none.
	Singly bool
	// Annealed: seats that have nothing in common but room are annealed.
	Annealed bool
}

// Row is where seats can be: an offer.
type Row struct {
	// Free is what is left of each resource next to the seats that are there.
	Free []int64
	// Mates are other rows that are cut from the same nodes.
	Mates []int32
	// Cards are the units that are free of each card next to the seats that are
	// there, Per how many make a card; nil where units may lie anywhere.
	Cards []int64
	Per   int64
}

// Kind is what seats have in common that want the same.
type Kind struct {
	// Places are where one can be, the cheapest first, whether or not there is room
	// now; Deals which deal each of them is, nil where each is one of its own; Sizes what it
	// takes there, one number a resource, deal by deal.
	Places []Place
	Deals  []int32
	Sizes  []int64
	// Charges are what it costs its account there, deal by deal.
	Charges []int64
	// Split is how one is put together from parts, nil for never. A kind that is has no rule
	// and shares no domain.
	Split *Split
	// Nowhere is what one counts for that has no place.
	Nowhere quantity.Micro
	// Cards and Cores are how big it is, for the order in which seats choose.
	Cards, Cores int64
}

// Place is one row and what it costs an hour.
type Place struct {
	Price quantity.Micro
	// Most is what it counts for its rule's.
	Most quantity.Micro
	Row  int32
	// Loose: units may lie on any cards.
	Loose bool
}

// Seat is one replica.
type Seat struct {
	Kind int32
	// At is its place among those of its kind, Nowhere, or InParts with Parts.
	At    int32
	Parts []Part
	// Stays: it must not lose its place without another.
	Stays bool
	// Group is the number of those that have places all together or not at all;
	// below 0: it is alone.
	Group int32
	// Follows: it may have no place, and so all of its group that follow, where the others
	// have one. One without is in its group that does not, and which shares a domain.
	Follows bool
	// Shares is the kind of domain in which all of its group must be; below 0: anywhere.
	// A problem without Domains needs none.
	Shares int32
	// Account that is charged; below 0: none.
	Account int32
	// Rule that it is under; below 0: none. A problem without Rules needs none.
	Rule int32
	// On is where its units lie now.
	On []Units
}

// Units of one card.
type Units struct {
	Card int32
	N    int64
}

// cost is what all seats come to as they were given.
func (p *Problem) cost() (sum quantity.Micro) {
	for i := range p.Seats {
		s := &p.Seats[i]
		switch k := &p.Kinds[s.Kind]; s.At {
		case Nowhere:
			sum += k.Nowhere
		case InParts:
			sum += k.Split.price(s.Parts)
		default:
			sum += k.Places[s.At].Price
		}
	}
	return sum
}

// size is what a kind takes in a place.
func (p *Problem) size(k *Kind, place int32) []int64 {
	n := len(p.Pooled)
	return k.Sizes[k.deal(place)*n:][:n:n]
}

// charges are what a kind costs its account in a place.
func (p *Problem) charges(k *Kind, place int32) []int64 {
	n := len(p.Accounts[0])
	return k.Charges[k.deal(place)*n:][:n:n]
}

// deal is what a place takes and charges by.
func (k *Kind) deal(place int32) int {
	if k.Deals == nil {
		return int(place)
	}
	return int(k.Deals[place])
}

// least is the cheapest that one of a kind can come to.
func (k *Kind) least() quantity.Micro {
	least := k.Nowhere
	if len(k.Places) > 0 {
		least = min(least, k.Places[0].Price)
	}
	if k.Split != nil {
		least = min(least, k.Split.least())
	}
	return least
}
