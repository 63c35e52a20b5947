package v1alpha1

// NewestRate is the rate between two currencies that holds at a time: the
// newest that is not in the future, nil when there is none.
func NewestRate(rates []Rate, from, to string, at Time) *Rate {
	var best *Rate
	for i := range rates {
		r := &rates[i]
		if r.From != from || r.To != to || r.Date.After(at.Time) {
			continue
		}
		if best == nil || r.Date.After(best.Date.Time) {
			best = r
		}
	}
	return best
}
