package gpunames

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Any is the model that every GPU is.
const Any = "any"

// Names, sizes and suffixes within a product string.
var (
	// sizeWord is a memory size as a word of its own or at a word's end.
	sizeWord = regexp.MustCompile(`(?:^|[^0-9.])(\d{1,4})\s?(?:gib|gb|gi)(?:$|[^a-z0-9])`)
	// volta is how Alibaba's traces tell the two V100 apart.
	volta = regexp.MustCompile(`^v100m(16|32)$`)
	// migWord is a MIG profile, as NVIDIA's feature discovery appends it.
	migWord = regexp.MustCompile(`[-_ ]?mig[-_ ](\d+c\.)?\d+g\.(\d+)gb(\+\S+)?`)
	// sharedWord is appended by NVIDIA's feature discovery to cards that are time-sliced.
	sharedWord = regexp.MustCompile(`[-_ ]shared$`)
	// unsafe is what separates words and may not stand in a label's value.
	unsafe = regexp.MustCompile(`[^a-z0-9.]+`)
)

// Normalize is the vendor, model and marketed memory of a GPU from its product
// name, such as NVIDIA-H100-80GB-HBM3, "Tesla T4" or A100-80GB, and the memory
// in MiB that its driver reports (0: unknown). Names that are already
// normalised stay as they are.
//
// A size in the name counts most, then the size at which the model is sold and
// which the driver's figure comes to; a model that is sold in one size has it.
// Of unknown models, and of shares of a card, the driver's figure is rounded up
// to the next GiB. What cannot be known is "" or nothing.
func Normalize(product string, driverMiB int64) (vendor, model string, memory v1alpha1.Amount) {
	s := strings.ToLower(strings.TrimSpace(product))
	if s == "" || s == Any {
		return "", "", roundUp(driverMiB)
	}
	if f := exact[s]; f != nil {
		return f.vendor, f.model, f.memory(0, driverMiB)
	}
	if mig := migWord.FindStringSubmatch(s); mig != nil {
		gi, _ := strconv.ParseInt(mig[2], 10, 64)
		vendor, model, _ = Normalize(migWord.ReplaceAllString(s, ""), 0)
		return vendor, model, gib(gi)
	}
	vendor, rest := brand(sharedWord.ReplaceAllString(s, ""))
	f := find(rest, vendor)
	if f == nil {
		return vendor, unknown(vendor, rest), roundUp(driverMiB)
	}
	return f.vendor, f.model, f.memory(named(rest), driverMiB)
}

// exact finds families by the names that most documents use: the normalised
// one, with and without its vendor, and the bare names of the table.
var exact = func() map[string]*family {
	out := map[string]*family{}
	for i := range families {
		f := &families[i]
		out[f.model], out[bare(f.model)] = f, f
	}
	for i := range families {
		for _, name := range families[i].names {
			if out[name] == nil {
				out[name] = &families[i]
			}
		}
	}
	return out
}()

// Model is the normalised name of a model alone.
func Model(name string) string {
	_, model, _ := Normalize(name, 0)
	return model
}

// Match reports whether a model that is wanted is the one there is: without
// regard to case, the vendor's prefix being optional, and by any of its names.
// "any" and "" want every model.
func Match(want, have string) bool {
	if want == "" || strings.EqualFold(want, Any) || strings.EqualFold(want, have) {
		return true
	}
	w, h := Model(want), Model(have)
	return w == h || bare(w) == bare(h)
}

// bare is a normalised model without its vendor.
func bare(model string) string {
	for _, v := range []string{nvidia, amd, intel} {
		if rest, ok := strings.CutPrefix(model, v+"-"); ok {
			return rest
		}
	}
	return model
}

// Named is the memory size that stands in a model's name ("A100-80GB"), nothing
// when none does: who asks for such a model asks for that size.
func Named(name string) v1alpha1.Amount {
	_, rest := brand(strings.ToLower(strings.TrimSpace(name)))
	return gib(named(rest))
}

// brand takes the vendor's words off the front.
func brand(s string) (vendor, rest string) {
	words := strings.Split(strings.Trim(unsafe.ReplaceAllString(s, "-"), "-."), "-")
	for len(words) > 1 {
		v, ok := brands[words[0]]
		if !ok {
			break
		}
		if vendor == "" {
			vendor = v
		}
		words = words[1:]
	}
	return vendor, strings.Trim(strings.Join(words, "-"), "-.")
}

// find is the family with the longest name that the product begins with, at
// the end of a word: "a10" is not an "a100".
func find(rest, vendor string) *family {
	compact := strings.ReplaceAll(strings.ReplaceAll(rest, "-", ""), ".", "")
	var best *family
	length := 0
	for i := range families {
		f := &families[i]
		if vendor != "" && f.vendor != vendor {
			continue
		}
		for _, name := range f.names {
			if len(name) > length && strings.HasPrefix(compact, name) && ends(compact[len(name):], name) {
				best, length = f, len(name)
			}
		}
	}
	return best
}

// tails are what may follow a model's name: form factors, memory kinds and
// sizes, generations. Anything else makes it another model ("A10" and "A10G",
// "RTX 4080" and "RTX 4080 SUPER").
var tails = regexp.MustCompile(`^(\d{2,3}(gib|gb|gi|g)?|m(16|32)|sxm\d?|pcie|nvl\d*|hbm\d?e?|oam|aiamulti|cnx|lowprofile|sff|server|edition|maxq|blackwell|workstation|ada|generation|d|full|x\d|s2|dgxs?|fhhl|l|gddr\d?|mlg|accelerator|gpu|hgx|superchip|480)*$`)

func ends(tail, name string) bool {
	if tail == "" {
		return true
	}
	if tail[0] >= '0' && tail[0] <= '9' && name[len(name)-1] >= '0' && name[len(name)-1] <= '9' && !sizeTail.MatchString(tail) {
		return false
	}
	return tails.MatchString(tail)
}

// sizeTail is a size with its unit right after a name that ends in a digit
// (a10080gb, gh200480gb); without a unit "a100" would be an a10 of 0 GB.
var sizeTail = regexp.MustCompile(`^\d{2,3}(gib|gb|gi|g)`)

// named is the size in GB that stands in a name, 0 when none does.
func named(rest string) int64 {
	if m := volta.FindStringSubmatch(rest); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		return n
	}
	if m := sizeWord.FindStringSubmatch(rest); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		return n
	}
	return 0
}

// Drivers report less than is sold, by what ECC and firmware keep: an A10G
// reports 22,888 MiB of 24 GB (93.1 %), an H100 81,559 of 80 GB (99.6 %).
// Between these bounds, in percent, a figure is taken for the sold size.
const (
	leastReported = 91
	mostReported  = 101
)

// memory is the marketed size of a card.
func (f *family) memory(inName, driverMiB int64) v1alpha1.Amount {
	for _, size := range f.sizes {
		if size == inName {
			return gib(size)
		}
	}
	if driverMiB <= 0 {
		if len(f.sizes) == 1 {
			return gib(f.sizes[0])
		}
		return gib(inName)
	}
	var best int64
	for _, size := range f.sizes {
		percent := driverMiB * 100 / (size * 1024)
		if percent >= leastReported && percent <= mostReported && (best == 0 || distance(size, driverMiB) < distance(best, driverMiB)) {
			best = size
		}
	}
	if best != 0 {
		return gib(best)
	}
	return roundUp(driverMiB)
}

func distance(size, mib int64) int64 {
	return max(size*1024-mib, mib-size*1024)
}

func gib(n int64) v1alpha1.Amount { return v1alpha1.AmountOf(n << 30) }

func roundUp(mib int64) v1alpha1.Amount {
	if mib <= 0 {
		return v1alpha1.Amount{}
	}
	return gib((mib + 1023) / 1024)
}

// unknown is the name of a model that is not in the table, safe as a label's
// value.
func unknown(vendor, rest string) string {
	name := rest
	if vendor != "" && name != "" {
		name = vendor + "-" + name
	}
	if len(name) > 63 {
		name = strings.TrimRight(name[:63], "-.")
	}
	return name
}

// Known reports whether a model is in the table, by any of its names.
func Known(name string) bool {
	s := strings.ToLower(strings.TrimSpace(name))
	if exact[s] != nil {
		return true
	}
	vendor, rest := brand(sharedWord.ReplaceAllString(migWord.ReplaceAllString(s, ""), ""))
	return find(rest, vendor) != nil
}

// Contrary says of a name that states another vendor than makes its model, such as
// amd-h100, which model that is, in capitals, who makes it and what to write; model is ""
// for any other name. Match takes such a name for the model, as decisions of the past did:
// who reads files refuses it.
func Contrary(name string) (model, stated, vendor, write string) {
	stated, rest := brand(sharedWord.ReplaceAllString(migWord.ReplaceAllString(strings.ToLower(strings.TrimSpace(name)), ""), ""))
	if stated == "" || find(rest, stated) != nil {
		return "", "", "", ""
	}
	f := find(rest, "")
	if f == nil {
		return "", "", "", ""
	}
	return strings.ToUpper(bare(f.model)), stated, f.vendor, f.vendor + "-" + rest
}

// Sold reports whether a model of the table, by any of its names, is sold with a memory of
// that many GB.
func Sold(name string, gb int64) bool {
	vendor, rest := brand(strings.ToLower(strings.TrimSpace(name)))
	f := find(rest, vendor)
	return f != nil && slices.Contains(f.sizes, gb)
}

// Models are the models of the table without their vendors, in capitals as people write
// them, in the table's order: datacentre cards of today first.
func Models() []string {
	out := make([]string, len(families))
	for i := range families {
		out[i] = strings.ToUpper(bare(families[i].model))
	}
	return out
}
