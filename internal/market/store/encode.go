package store

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/strictjson"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market"
)

// Bounds of what stands in the store.
const (
	// maxObject is the most of a report that lies in one object, packed.
	maxObject = 256 << 10
	// maxPacked is the most that a report may take, packed.
	maxPacked = 1 << 20
	// maxParts is into how many objects that is cut.
	maxParts = maxPacked / maxObject
	// maxUnpacked is the most that a reader unpacks.
	maxUnpacked = 8 << 20
	// maxModels bounds the text of a summary.
	maxModels = 200
)

// packed is a report as it stands in the store.
type packed struct {
	digest string
	bytes  []byte
}

// pack writes a report in the form in which it is kept.
func pack(r *wire.FlavorReport) (packed, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return packed{}, fmt.Errorf("write the report: %w", err)
	}
	zipped, err := zip(text)
	if err != nil {
		return packed{}, fmt.Errorf("pack the report: %w", err)
	}
	if len(zipped) > maxPacked || len(text) > maxUnpacked {
		return packed{}, fmt.Errorf("the report takes %d KiB (%d KiB packed), and the market's store takes at most %d KiB (%d KiB packed): offer equal nodes as one flavor, and report no contract that is gone",
			len(text)>>10, len(zipped)>>10, maxUnpacked>>10, maxPacked>>10)
	}
	sum := sha256.Sum256(text)
	return packed{hex.EncodeToString(sum[:]), zipped}, nil
}

// writers are used again: one takes most of a mebibyte.
var writers = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// zip packs a text.
func zip(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w := writers.Get().(*gzip.Writer) //nolint:forcetypeassert // the pool has no other
	defer writers.Put(w)
	w.Reset(&out)
	_, err := w.Write(text)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// unpack reads what pack wrote, or somebody else.
func unpack(digest string, data []byte) (*wire.FlavorReport, error) {
	text, err := unzip(data, maxUnpacked)
	if err != nil {
		return nil, fmt.Errorf("unpack the report: %w", err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("the report is not the one of digest %.64q", digest)
	}
	out := &wire.FlavorReport{}
	if err := strictjson.Decode(text, out); err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	return out, nil
}

// unzip unpacks at most so many bytes.
func unzip(data []byte, limit int64) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > limit:
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return text, nil
}

// parts cuts a report that is too large for one object; none otherwise. Their
// names say what is in them, so that the same report has the same parts.
func (p packed) parts(provider string, g wire.Generation) []*marketcrd.AdvertisementPart {
	if len(p.bytes) <= maxObject {
		return nil
	}
	var out []*marketcrd.AdvertisementPart
	for chunk := range slices.Chunk(p.bytes, maxObject) {
		part := &marketcrd.AdvertisementPart{Spec: marketcrd.AdvertisementPartSpec{Provider: provider, Report: chunk}}
		part.Name = partName(provider, g, chunk)
		out = append(out, part)
	}
	return out
}

// objects is how many objects a report takes: one, or the parts and their head.
func (p packed) objects() int {
	if len(p.bytes) <= maxObject {
		return 1
	}
	return 1 + (len(p.bytes)+maxObject-1)/maxObject
}

// partName has the report's generation in it: a part that is to go is none of a
// newer report's.
func partName(provider string, g wire.Generation, chunk []byte) string {
	sum := sha256.Sum256(append([]byte(g.String()+" "), chunk...))
	return provider + "." + hex.EncodeToString(sum[:16])
}

// summaryOf is what people see of a report.
func summaryOf(r *wire.FlavorReport) marketcrd.AdvertisementSummary {
	out := marketcrd.AdvertisementSummary{Flavors: int32(min(len(r.Flavors), math.MaxInt32))} //nolint:gosec // bounded
	var models []string
	for i := range r.Flavors {
		s := &r.Flavors[i].Spec
		if s.GPU == nil {
			continue
		}
		units := max(int64(s.GPU.UnitsPerGPU), 1)
		all := s.Capacity[v1alpha1.GPU]
		free := all.Sub(s.Used[v1alpha1.GPU])
		for _, held := range s.Held {
			free = free.Sub(held[v1alpha1.GPU])
		}
		out.GPUs += all.Int64() / units
		out.GPUsFree += max(free.Int64(), 0) / units
		if m := market.Class(&r.Flavors[i]); m != "" && !slices.Contains(models, m) {
			models = append(models, m)
		}
	}
	slices.Sort(models)
	for len(models) > 0 && len(strings.Join(models, ",")) > maxModels {
		models = models[:len(models)-1]
	}
	out.Models = strings.Join(models, ",")
	return out
}
