package daemon

import (
	"context"
	"log/slog"
	"time"
)

// How connections of agents are spread: agents keep theirs for days, so that after a
// rolling update the replica that was up first has most of them.
const (
	// balanceEvery is how often is looked, and a part of the excess given away.
	balanceEvery = 10 * time.Second
	// slack is how many connections more than its fair share a replica keeps, and more
	// than half as many again.
	slack = 16
	// shareAtOnce is the part of its connections that a replica gives away each time.
	shareAtOnce = 20
)

// excess is how many of a replica's connections it gives away now: none unless it has
// half as many again as its fair share with the others, and some more; then at most a twentieth
// of them, and none of its share. Others that do not say how many they have do not count.
func excess(own int, others map[string]int) int {
	if len(others) == 0 {
		return 0
	}
	all := own
	for _, n := range others {
		all += n
	}
	share := all / (len(others) + 1)
	if own <= share+share/2+slack {
		return 0
	}
	return min(own-share, max(own/shareAtOnce, 1))
}

// Balance gives away connections while this replica has far more than the others that live,
// until the context ends. Each goes gracefully, with its next answer, and comes again by
// the balancer.
func Balance(ctx context.Context, own func() int, others func() map[string]int, shed func(most int) int, log *slog.Logger) error {
	tick := time.NewTicker(balanceEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		have, theirs := own(), others()
		if most := excess(have, theirs); most > 0 {
			if n := shed(most); n > 0 {
				log.Info("agents' connections are given away, because other replicas have far fewer", "connections", have, "givenAway", n, "others", theirs)
			}
		}
	}
}
