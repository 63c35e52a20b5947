package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// What is seen in one cluster lies in one object, and the cluster is another's: its
// administrators may give objects there texts as long and as many as they like. What does
// not fit is told with shorter texts, then of fewer contracts; the first of its troubles says
// so. Nothing that is decided by is changed of a contract that is told: a text that was there
// is there.

// maxSeen is the most that what is seen in a cluster may take, packed.
const maxSeen = maxObject

// cuts are how long texts may be, in bytes, one after the other; 0: as they are.
var cuts = []int{0, 256, 64, 16}

// maxCutBlockers and maxCutTroubles are how many of a drain's blockers, and of the cluster's
// troubles, are told where texts are cut.
const maxCutBlockers, maxCutTroubles = 4, 100

// fitSeen gives what is told of a report, which fits, with its digest and its packed form.
// why says what is missing, "" for nothing.
func fitSeen(report wire.Observed) (told wire.Observed, digest string, packed []byte, why string, err error) {
	size := 0
	for _, cut := range cuts {
		told = cutTexts(report, cut)
		if cut > 0 {
			why = fmt.Sprintf("what is seen in the cluster takes %d KiB packed, and replicas share at most %d: texts are cut to %d bytes", size>>10, maxSeen>>10, cut)
			told.Troubles = loud(why, told.Troubles)
		}
		var text int
		digest, packed, text, err = digestOf(told)
		if err != nil {
			return told, "", nil, "", err
		}
		if text <= maxUnpacked && len(packed) <= maxSeen {
			return told, digest, packed, why, nil
		}
		if cut == 0 {
			size = len(packed)
		}
	}
	names := slices.Sorted(maps.Keys(told.Contracts))
	short := cutTexts(report, cuts[len(cuts)-1])
	for keep := len(names); keep > 0; {
		keep = min(keep*3/4, keep*maxSeen/max(len(packed), 1))
		why = fmt.Sprintf("what is seen in the cluster takes %d KiB packed, and replicas share at most %d: %d of %d contracts are left out, and texts are cut", size>>10, maxSeen>>10, len(names)-keep, len(names))
		told.Contracts = make(map[string]v1alpha1.ConsumerObservation, keep)
		for _, name := range names[:keep] {
			told.Contracts[name] = short.Contracts[name]
		}
		told.Troubles = loud(why, short.Troubles)
		var text int
		if digest, packed, text, err = digestOf(told); err != nil {
			return told, "", nil, "", err
		}
		if text <= maxUnpacked && len(packed) <= maxSeen {
			return told, digest, packed, why, nil
		}
	}
	return told, "", nil, "", fmt.Errorf("what is observed takes %d KiB packed without any contract, and the market's store takes at most %d", len(packed)>>10, maxSeen>>10)
}

// loud puts why before some troubles.
func loud(why string, troubles []string) []string {
	return append([]string{why}, troubles[:min(len(troubles), maxCutTroubles)]...)
}

// cutTexts is a report with its texts cut to so many bytes; 0: as it is.
func cutTexts(report wire.Observed, most int) wire.Observed {
	if most == 0 {
		return report
	}
	cut := func(texts []string, few int) []string {
		out := slices.Clone(texts[:min(len(texts), few)])
		for i := range out {
			out[i] = cutText(out[i], most)
		}
		return out
	}
	report.Problem, report.Troubles = cutText(report.Problem, most), cut(report.Troubles, len(report.Troubles))
	contracts := make(map[string]v1alpha1.ConsumerObservation, len(report.Contracts))
	for name, c := range report.Contracts {
		for _, text := range []*string{&c.Message, &c.PeeringMessage, &c.ProviderMessage, &c.SliceDenied, &c.NodeMessage, &c.OffloadingMessage} {
			*text = cutText(*text, most)
		}
		c.Blockers = cut(c.Blockers, maxCutBlockers)
		contracts[name] = c
	}
	report.Contracts = contracts
	return report
}

// cutText is a text of at most so many bytes, none of them half a rune.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// digestOf tells what two reports say apart, whatever their generations, and gives
// the report as it is kept, with how long it is before it is packed.
func digestOf(report wire.Observed) (digest string, packed []byte, size int, err error) {
	report.Generation = ""
	text, err := json.Marshal(report)
	if err != nil {
		return "", nil, 0, fmt.Errorf("write what is observed: %w", err)
	}
	sum := sha256.Sum256(text)
	if packed, err = zip(text); err != nil {
		return "", nil, 0, fmt.Errorf("pack what is observed: %w", err)
	}
	return hex.EncodeToString(sum[:]), packed, len(text), nil
}
