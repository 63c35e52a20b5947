package strictyaml

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/fleetbroker/fleetbroker/internal/api/gpuforms"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// digits are the plain digits of a number that YAML reads in an odd way: 100 for 1e2 and
// 1_00, 3 for 03, 31 for 0x1f; "" where readers do not agree (010 is 8 to some), and for
// what is no number that can be written so.
func digits(text string) string {
	plain := strings.TrimPrefix(strings.ReplaceAll(text, "_", ""), "+")
	if n, err := strconv.ParseInt(plain, 0, 64); err == nil { // of 03, 0o3, 0x3 and 0b11
		decimal := strings.TrimLeft(strings.TrimPrefix(plain, "-"), "0")
		if ten, err := strconv.ParseInt(decimal, 10, 64); err == nil && strings.Trim(plain, "-0123456789") == "" && ten != max(n, -n) {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	const most = 1e15 // up to which every whole number is a float's
	f, err := strconv.ParseFloat(plain, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(plain), "e")
	if f == 0 && strings.ContainsAny(mantissa, "123456789") {
		return "" // too small to be told from nothing
	}
	if err != nil || math.IsNaN(f) || math.Abs(f) > most || f != 0 && math.Abs(f) < 1/most || strings.HasPrefix(plain, "0") && !strings.Contains(plain, ".") {
		return ""
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// oddly says of a number that YAML reads in an odd way what to write for it, in a form that
// the shape takes.
func oddly(value string, s *shape) string {
	plain := digits(value)
	whole := !strings.Contains(plain, ".")
	switch {
	case s.form != fInt && s.form != fFloat && s.form != fQuantity && s.form != fObjectOrText:
		return s.want()
	case s.form == fFloat && plain == "":
		return "write it in plain digits, such as 0.5"
	case plain == "" || !whole && s.form != fFloat && s.form != fQuantity:
		return "write a whole number in plain digits, without a leading zero"
	case !whole && s.form == fQuantity:
		return `write "` + plain + `"`
	}
	return "write " + plain
}

// amount lets a quantity be read under its resource's name.
func (w *walker) amount(kv pair) {
	v := resolve(kv.value)
	if v.Kind != yaml.ScalarNode {
		return
	}
	if otherWords[kv.key.Value] == "architectures" || kv.key.Value == "architecture" {
		w.problem(kv.key, "%s: an architecture is no resource; write placement: {architectures: [%s]}", w.path, clip(v.Value))
		return
	}
	if _, err := v1alpha1.ParseAmount(kv.key.Value, v.Value); err != nil {
		w.problem(v, "%s: %s%s", w.path, clip(strings.TrimPrefix(err.Error(), kv.key.Value+": ")), wholly(kv.key.Value, v.Value))
	}
}

// fraction is what to write for a fraction without quotes as the quantity of a resource.
func fraction(name, value string) string {
	switch {
	case name == v1alpha1.Memory || name == v1alpha1.EphemeralStorage || strings.HasPrefix(name, "hugepages-"):
		return fmt.Sprintf("%s: %s is a number of bytes; write %sGi", name, value, value)
	case wholly(name, value) != "":
		return fmt.Sprintf("%s: %s is not a whole number%s", name, value, wholly(name, value))
	}
	return fmt.Sprintf("%s: %s is a number in YAML; write \"%s\" in quotes", name, value, value)
}

// wholly is what to write for a fraction of what only comes whole, after what is wrong;
// "" for anything else.
func wholly(name, value string) string {
	q, err := v1alpha1.ParseQuantity(value)
	if err != nil || q.Sign() <= 0 {
		return ""
	}
	if _, err := v1alpha1.AmountOfQuantity(name, q); err == nil {
		return ""
	}
	if f := q.AsApproximateFloat64(); f == math.Trunc(f) {
		return "" // something else is wrong with it
	}
	up := max(q.Value(), 1) // rounded up
	vendor, profile, is, _ := gpuforms.ByResource(name)
	if part := q.AsApproximateFloat64(); is && profile == "" && part < 1 {
		return fmt.Sprintf("; cards are counted whole: write 1, or for a part of one gpu: {share: \"%s\", vendor: %s}", strconv.FormatFloat(part, 'f', -1, 64), vendor)
	}
	if up == 1 {
		return "; it is counted whole: write 1"
	}
	return fmt.Sprintf("; it is counted whole: write %d, or %d", up, up-1)
}
