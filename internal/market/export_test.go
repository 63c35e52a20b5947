package market

// BlobFromNothing is what Blobs should hold of a provider.
func (s *Snapshot) BlobFromNothing(provider string) Blob { return writeBlob(s.Of(provider), nil).Blob }

// FromRows are the offers made of the tables' rows and of nothing else.
func (s *Snapshot) FromRows() (out []*Offer) {
	it, err := s.txn.Get(tableOffer, indexID)
	must(err)
	for raw := it.Next(); raw != nil; raw = it.Next() {
		row := raw.(*offerRow)
		var usage *usageRow
		for _, u := range usageOf(s.txn, row.provider) {
			if u.name == row.name {
				usage = u
			}
		}
		out = append(out, joined(source{row, usage}, s.heard[row.provider]))
	}
	return out
}
