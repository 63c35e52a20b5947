package v1alpha1

// Where a flavor's price or location comes from.
const (
	// SourceStated is a reviewed file: a Cluster file, a price table, a flavor's own file.
	SourceStated = "stated"
	// SourceReported is the word of the provider's agent, which nobody reviewed.
	SourceReported = "reported"
	// SourceDefault is the Cluster file's defaultPrice.
	SourceDefault = "default"
)

// Sources say where an offer's location and on-demand price come from ("" where
// there is none), and what of them the agent reports otherwise than the reviewed
// files state it, "" when nothing. What they state holds.
type Sources struct {
	// Agent: an agent advertised the flavor itself, and no file.
	Agent bool
	// Location and Price are one of the Source* words.
	Location, Price string
	// Shadows: a file under flavors/ offers the same name, so that nothing new is sold of
	// what the agent reports until one of them is renamed.
	Shadows bool
	// LocationConflict and PriceConflict are what is reported otherwise.
	LocationConflict, PriceConflict string
}

// Unreviewed names what of an offer is the agent's word alone, as "price and
// location"; "" for nothing.
func (s Sources) Unreviewed() string {
	switch price, location := s.Price == SourceReported, s.Location == SourceReported; {
	case price && location:
		return "price and location"
	case price:
		return "price"
	case location:
		return "location"
	}
	return ""
}

// What may be taken on the agent's word though a reviewed file states otherwise
// (Cluster.spec.trustAgent).
const (
	TrustPrice    = "price"
	TrustLocation = "location"
)

// Trusts reports whether the cluster's agent has the last word on a topic.
func (c *Cluster) Trusts(topic string) bool {
	if c == nil {
		return false
	}
	for _, t := range c.Spec.TrustAgent {
		if t == topic {
			return true
		}
	}
	return false
}
