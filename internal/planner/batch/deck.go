package batch

// A row's cards: whole cards are those of which nothing is taken, and what is less
// than a card lies on one.

// whole and part are so many units in cards of the row and what is left.
func (r *Row) parts(units int64) (whole, part int64) { return units / r.Per, units % r.Per }

// hosts reports whether the cards that are free so hold units.
func (r *Row) hosts(free []int64, units int64, loose bool) bool {
	if free == nil || units == 0 || loose {
		return true
	}
	whole, part := r.parts(units)
	empty, spare := int64(0), int64(0)
	for _, n := range free {
		if n >= r.Per {
			empty++
		} else {
			spare = max(spare, n)
		}
	}
	if part == 0 || spare >= part {
		return empty >= whole
	}
	return empty > whole
}

// lay takes units from the cards, and returns from which: whole ones first, a part
// from the fullest that has it; loose ones from the fullest.
func (r *Row) lay(free []int64, units int64, loose bool) (on []Units) {
	if free == nil || units == 0 {
		return nil
	}
	take := func(card int, n int64) {
		free[card] -= n
		on = append(on, Units{int32(card), n}) //nolint:gosec // a row has few cards
	}
	if loose {
		for units > 0 {
			at := fullest(free, 1)
			if at < 0 {
				return on
			}
			n := min(units, free[at])
			take(at, n)
			units -= n
		}
		return on
	}
	whole, part := r.parts(units)
	for i := range free {
		if whole > 0 && free[i] >= r.Per {
			take(i, r.Per)
			whole--
		}
	}
	if part > 0 {
		if at := fullest(free, part); at >= 0 {
			take(at, part)
		}
	}
	return on
}

// fullest is the card with the least free of those that have so much; -1 for none.
func fullest(free []int64, least int64) int {
	at := -1
	for i, n := range free {
		if n >= least && (at < 0 || n < free[at]) {
			at = i
		}
	}
	return at
}
