package batch

// order are places of a kind in the order in which they are looked at: which, nil for all as
// they are, and where the room of each begins.
type order struct{ places, rooms []int32 }

func (o order) place(n int) int32 {
	if o.places == nil {
		return int32(n) //nolint:gosec // their number
	}
	return o.places[n]
}

// orders are the places of each kind, the cheapest first, and the best by shadow price first.
type orders struct{ byPrice, ranked []order }

func (p *Problem) orders(ranked [][]int32) (out orders) {
	for i := range p.Kinds {
		k := &p.Kinds[i]
		out.ranked, out.byPrice = append(out.ranked, p.order(k, ranked[i])), append(out.byPrice, p.order(k, nil))
	}
	return out
}

// order is that of some places of a kind, or (nil) of all.
func (p *Problem) order(k *Kind, places []int32) order {
	o := order{places: places, rooms: make([]int32, 0, len(k.Places))}
	if places == nil {
		for at := range k.Places {
			o.rooms = append(o.rooms, k.Places[at].Row*int32(len(p.Pooled))) //nolint:gosec // there are few resources
		}
		return o
	}
	for _, at := range places {
		o.rooms = append(o.rooms, k.Places[at].Row*int32(len(p.Pooled))) //nolint:gosec // there are few resources
	}
	return o
}
