package market

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/gpunames"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// maxRows bounds a table: more than all clouds' price lists together.
const maxRows = 200_000

// Table is what a CSV of offers or nodes says: flavors, and the clusters that
// they are of.
type Table struct {
	// Flavors by provider and name.
	Flavors []*v1alpha1.Flavor
	// Clusters by name, all providers.
	Clusters []*v1alpha1.Cluster
}

// ReadCSV reads offers (one kind of machine a row, with prices) or the node
// list of a cluster trace (one node a row). Columns go by the header's names;
// unknown ones are ignored. The nodes of a trace belong to a cluster of the
// name given.
func ReadCSV(r io.Reader, cluster string) (*Table, error) {
	in, columns, err := openTable(r)
	if err != nil {
		return nil, err
	}
	read := offerRowOf
	required := []string{"provider", "region", "instance_type", "gpu_model", "gpu_count", "gpu_mem_gib", "vcpus", "mem_gib", "price_ondemand_hour", "price_spot_hour", "currency"}
	if _, nodes := columns["sn"]; nodes {
		read = func(r *record) (*v1alpha1.Flavor, *v1alpha1.Cluster) { return nodeRowOf(r, cluster) }
		required = []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}
	}
	for _, name := range required {
		if _, ok := columns[name]; !ok {
			return nil, &TableError{1, 1, fmt.Errorf("column %q is missing: offers need %s; node lists need sn,cpu_milli,memory_mib,gpu,model", name, strings.Join(required, ","))}
		}
	}
	return readRows(in, columns, required, read)
}

// TableError is a mistake in a table, and where it stands.
type TableError struct {
	// Line and Column, both from 1; the column is that of the field's first byte.
	Line, Column int
	// Err says what is wrong.
	Err error
}

func (e *TableError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Err) }
func (e *TableError) Unwrap() error { return e.Err }

// openTable reads a table's header: where each column is, by its name in lower
// case. Of two columns of one name the first counts.
func openTable(r io.Reader) (*csv.Reader, map[string]int, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	in.TrimLeadingSpace = true
	header, err := in.Read()
	if err != nil {
		return nil, nil, syntaxError("read the table's header", err)
	}
	columns := map[string]int{width: len(header)}
	for i, name := range header {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		if _, twice := columns[name]; !twice {
			columns[name] = i
		}
	}
	return in, columns, nil
}

// syntaxError says where a table is no CSV.
func syntaxError(what string, err error) error {
	var at *csv.ParseError
	if errors.As(err, &at) {
		return &TableError{at.Line, at.Column, fmt.Errorf("%s: %w", what, at.Err)}
	}
	return fmt.Errorf("%s: %w", what, err)
}

func readRows(in *csv.Reader, columns map[string]int, required []string, read func(*record) (*v1alpha1.Flavor, *v1alpha1.Cluster)) (*Table, error) {
	out := &Table{}
	clusters := map[string]*v1alpha1.Cluster{}
	lines := map[string]int{}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, syntaxError("read the table", err)
		}
		line, _ := in.FieldPos(0)
		if len(out.Flavors) >= maxRows {
			return nil, &TableError{line, 1, fmt.Errorf("more than %d rows", maxRows)}
		}
		r, err := rowOf(in, columns, required, fields)
		if err != nil {
			return nil, err
		}
		f, c := read(r)
		if r.err != nil {
			return nil, r.err
		}
		if first, twice := lines[f.Ref()]; twice {
			return nil, &TableError{line, 1, fmt.Errorf("%s is on line %d already: a kind of machine is one row, with its number in the column count", f.Ref(), first)}
		}
		lines[f.Ref()] = line
		out.Flavors = append(out.Flavors, f)
		clusters[c.Metadata.Name] = c
	}
	if len(out.Flavors) == 0 {
		return nil, errNoRows
	}
	for _, name := range sortedKeys(clusters) {
		out.Clusters = append(out.Clusters, clusters[name])
	}
	slices.SortFunc(out.Flavors, func(a, b *v1alpha1.Flavor) int {
		return slices.Compare([]string{a.Metadata.Namespace, a.Metadata.Name}, []string{b.Metadata.Namespace, b.Metadata.Name})
	})
	return out, nil
}

// errNoRows is a table of a header alone.
var errNoRows error = &TableError{2, 1, errors.New("the table has a header and no rows")}

// rowOf is a row that has every required column, and no more fields than the header has:
// where a comma is too many or too few, each value after it is another column's.
func rowOf(in *csv.Reader, columns map[string]int, required, fields []string) (*record, error) {
	line, _ := in.FieldPos(0)
	if len(fields) > columns[width] {
		return nil, &TableError{line, 1, fmt.Errorf("%d fields, and the header has %d: quote a field that has a comma in it", len(fields), columns[width])}
	}
	for _, name := range required {
		if columns[name] >= len(fields) {
			return nil, &TableError{line, 1, fmt.Errorf("%d fields, and %s is number %d: leave empty what is not known, with its comma", len(fields), name, columns[name]+1)}
		}
	}
	return &record{in: in, columns: columns, fields: fields}, nil
}

// width is the key of how many columns the header has: no column has this name.
const width = "\x00width"

// record is one row; the first mistake in it stays in err.
type record struct {
	in      *csv.Reader
	columns map[string]int
	fields  []string
	err     error
}

func (r *record) text(column string) string {
	i, ok := r.columns[column]
	if !ok || i >= len(r.fields) {
		return ""
	}
	return strings.TrimSpace(r.fields[i])
}

func (r *record) fail(column, format string, args ...any) {
	if r.err != nil {
		return
	}
	line, at := r.in.FieldPos(0)
	if i, ok := r.columns[column]; ok && i < len(r.fields) {
		line, at = r.in.FieldPos(i)
	}
	r.err = &TableError{line, at, fmt.Errorf("%s: %s", column, fmt.Sprintf(format, args...))}
}

// milli is a column's number in thousandths, so that 22.35 GiB or half a GPU
// need no float.
func (r *record) milli(column string, absent int64) int64 {
	s := r.text(column)
	if s == "" {
		return absent
	}
	d, err := v1alpha1.ParseDecimal(s)
	if err != nil || d.Sign() < 0 || d.Cmp(v1alpha1.DecimalFromInt(1_000_000_000)) > 0 {
		r.fail(column, "%q is not a number from 0", s)
		return 0
	}
	return d.Micro() / 1000
}

func (r *record) whole(column string, absent int64) int64 {
	s := r.text(column)
	if s == "" {
		return absent
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1_000_000_000_000 {
		r.fail(column, "%q is not a whole number from 0", s)
		return 0
	}
	return n
}

// price is a column's price, nil when it is empty.
func (r *record) price(column string) *v1alpha1.Decimal {
	s := r.text(column)
	if s == "" {
		return nil
	}
	d, err := v1alpha1.ParseDecimal(s)
	if err != nil || d.Sign() < 0 {
		r.fail(column, "%q is not a price", s)
		return nil
	}
	return &d
}

var unsafeName = regexp.MustCompile(`[^a-z0-9]+`)

// name makes a DNS label of what stands in a column.
func (r *record) name(column, text string) string {
	s := strings.Trim(unsafeName.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if s == "" {
		r.fail(column, "%q makes no name", text)
	}
	if len(s) > 63 {
		s = strings.TrimRight(s[:63], "-")
	}
	return s
}

// pricePlaces is to how many digits the price of a machine is divided among
// its units.
const pricePlaces = 12

// offerRowOf is a row of offers: so many machines of one kind. A machine is
// taken whole, as clouds sell it, and its price lies on its GPUs (on its cores,
// without GPUs).
func offerRowOf(r *record) (*v1alpha1.Flavor, *v1alpha1.Cluster) {
	region := r.text("region")
	if r.text("provider") == "" {
		r.fail("provider", "an offer needs a provider")
	}
	c := clusterOf(r.name("provider", r.text("provider")+"-"+region), region)
	count := r.whole("count", 1)
	if count == 0 {
		r.fail("count", "0 machines are no offer")
	}
	cpu, memory := r.milli("vcpus", 0), r.milli("mem_gib", 0)*(1<<30)/1000
	if cpu == 0 || memory == 0 {
		r.fail(map[bool]string{true: "vcpus", false: "mem_gib"}[cpu == 0], "0: a machine has cores and memory, and nothing is placed on one without")
	}
	machine := v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(cpu), v1alpha1.Memory: v1alpha1.AmountOf(memory)}
	f := flavorOf(c.Metadata.Name, r.name("instance_type", r.text("instance_type")))
	f.Spec.Location.Region = region
	if zones := strings.FieldsFunc(r.text("zones"), func(c rune) bool { return c == '|' || c == ';' || c == ' ' }); len(zones) == 1 {
		f.Spec.Location.Zone = zones[0]
	}
	unit, units := v1alpha1.CPU, cpu/1000
	if gpus := r.milli("gpu_count", 0); gpus > 0 || r.text("gpu_model") != "" {
		unit, units = v1alpha1.GPU, cards(f, r, gpus)
		machine[v1alpha1.GPU] = v1alpha1.AmountOf(units)
	}
	f.Spec.Price = machinePrice(r, unit, units)
	f.Spec.Capacity = v1alpha1.Resources{}
	for name, a := range machine {
		f.Spec.Capacity[name] = a.Mul(count)
	}
	f.Spec.Partition = &v1alpha1.Partition{Min: machine, Step: machine}
	return f, c
}

// cards describes the GPUs of a machine and says how many sellable units they
// are. Memory in the table is that of a whole card. A part of a card is one
// unit of which a card makes 1/part; such parts are vGPUs, which share a card in
// time. Where the number of cards was rounded to 0 (AWS's g6f), the memory is
// that of the part and tells its size.
func cards(f *v1alpha1.Flavor, r *record, milli int64) (units int64) {
	name, mib := r.text("gpu_model"), r.milli("gpu_mem_gib", 0)*1024/1000
	if name == "" {
		r.fail("gpu_model", "%s GPUs of no model", r.text("gpu_count"))
	}
	vendor, model, memory := gpunames.Normalize(name, mib)
	g := &v1alpha1.FlavorGPU{Vendor: vendor, Model: model, UnitsPerGPU: 1, ResourceName: resourceName(vendor)}
	f.Spec.GPU = g
	units = max(milli/1000, 1)
	switch {
	case milli > 1000 && milli%1000 != 0:
		r.fail("gpu_count", "%q is neither whole nor a part of one card", r.text("gpu_count"))
	case milli == 0:
		_, _, memory = gpunames.Normalize(name, 0)
		g.UnitsPerGPU = parts(memory.Int64(), mib<<20)
	case milli < 1000:
		g.UnitsPerGPU = int32((1000 + milli/2) / milli) //nolint:gosec // at most 1000
	}
	if g.UnitsPerGPU > 1 {
		g.Sharing = "time-slicing"
		memory = v1alpha1.AmountOf(memory.Int64() / int64(g.UnitsPerGPU))
	}
	g.Memory.Amount = memory
	return units
}

// parts is into how many parts, a power of two, a card is cut when one has so
// much memory; vendors keep some of it, so the next lower power holds.
func parts(card, part int64) int32 {
	n := int32(1)
	for part > 0 && n < 64 && part*int64(n)*2 <= card {
		n *= 2
	}
	return n
}

// resourceName is what the vendors' device plugins call a GPU.
func resourceName(vendor string) string {
	switch vendor {
	case "amd":
		return "amd.com/gpu"
	case "intel":
		return "habana.ai/gaudi"
	}
	return "nvidia.com/gpu"
}

// machinePrice spreads a machine's price over its units; nil without one.
func machinePrice(r *record, unit string, units int64) *v1alpha1.Price {
	demand, spot := r.price("price_ondemand_hour"), r.price("price_spot_hour")
	currency := strings.ToUpper(r.text("currency"))
	if demand == nil && spot == nil {
		return nil
	}
	if currency == "" || !currencyForm.MatchString(currency) {
		r.fail("currency", "%q is not a currency: three letters such as USD", r.text("currency"))
	}
	if units == 0 {
		r.fail("vcpus", "a machine without GPUs needs cores to have a price")
		return nil
	}
	p := &v1alpha1.Price{Currency: currency}
	if demand != nil {
		p.PerHour = v1alpha1.UnitPrices{unit: demand.DivInt(units, pricePlaces)}
	}
	if spot != nil {
		p.Spot = v1alpha1.UnitPrices{unit: spot.DivInt(units, pricePlaces)}
	}
	return p
}

// nodeRowOf is a row of a trace's node list: one node, of which any part can
// be had, without a price.
func nodeRowOf(r *record, cluster string) (*v1alpha1.Flavor, *v1alpha1.Cluster) {
	c := clusterOf(r.name("cluster", cluster), "")
	f := flavorOf(c.Metadata.Name, r.name("sn", r.text("sn")))
	f.Spec.Capacity = v1alpha1.Resources{
		v1alpha1.CPU:    v1alpha1.AmountOf(r.whole("cpu_milli", 0)),
		v1alpha1.Memory: v1alpha1.AmountOf(r.whole("memory_mib", 0) << 20),
	}
	for _, column := range []string{"cpu_milli", "memory_mib"} {
		if r.whole(column, 0) == 0 {
			r.fail(column, "0: a node has cores and memory, and nothing is placed on one without")
		}
	}
	if gpus := r.whole("gpu", 0); gpus > 0 {
		if r.text("model") == "" {
			r.fail("model", "%d GPUs of no model", gpus)
		}
		vendor, model, memory := gpunames.Normalize(r.text("model"), 0)
		f.Spec.Capacity[v1alpha1.GPU] = v1alpha1.AmountOf(gpus)
		f.Spec.GPU = &v1alpha1.FlavorGPU{Vendor: vendor, Model: model, Memory: v1alpha1.MemorySize{Amount: memory}, UnitsPerGPU: 1, ResourceName: resourceName(vendor)}
	}
	return f, c
}

func flavorOf(provider, name string) *v1alpha1.Flavor {
	return &v1alpha1.Flavor{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindFlavor},
		Metadata: v1alpha1.Metadata{Name: name, Namespace: provider},
		Spec:     v1alpha1.FlavorSpec{Type: "K8Slice", Architecture: "amd64"},
	}
}

func clusterOf(name, region string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindCluster},
		Metadata: v1alpha1.Metadata{Name: name},
		Spec:     v1alpha1.ClusterSpec{Roles: []string{"provider"}, Location: v1alpha1.Location{Region: region}},
	}
}
