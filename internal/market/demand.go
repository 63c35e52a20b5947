package market

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// Demand is one row of a table of demand: an intent with the time in which it
// was there.
type Demand struct {
	// Line of the table.
	Line int
	// Name is unique in the table; Tenant is "" where the table has none.
	Name, Tenant string
	// CPU in milli-cores and Memory in bytes.
	CPU, Memory v1alpha1.Amount
	// GPUs is how many cards; MilliGPU is 1000, or with one card the part of it that is enough.
	GPUs, MilliGPU int64
	// Models that will do; none is any.
	Models []string
	// Created and Deleted in seconds of the table's own clock; Deleted is -1 for what stays.
	Created, Deleted int64
	// Priority from 0 to 1000.
	Priority int32
	// MaxHourly is the most it may cost an hour, nil without limit.
	MaxHourly *v1alpha1.Decimal
}

// Milli is what a row asks of GPUs, in thousandths of a card.
func (d *Demand) Milli() int64 { return d.GPUs * d.MilliGPU }

// demandColumns are those that a table of demand must have.
var demandColumns = []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time"}

// ReadDemand reads a table of demand, one intent a row: the form in which
// cluster traces list pods. Columns go by the header's names; unknown ones are
// ignored. Mistakes are TableErrors.
func ReadDemand(r io.Reader) ([]Demand, error) {
	in, columns, err := openTable(r)
	if err != nil {
		return nil, err
	}
	for _, name := range demandColumns {
		if _, ok := columns[name]; !ok {
			return nil, &TableError{1, 1, fmt.Errorf("column %q is missing: demand needs %s; tenant, priority and max_hourly are optional", name, strings.Join(demandColumns, ","))}
		}
	}
	var out []Demand
	lines := map[string]int{}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			if len(out) == 0 {
				return nil, errNoRows
			}
			return out, nil
		}
		if err != nil {
			return nil, syntaxError("read the table", err)
		}
		row, err := rowOf(in, columns, demandColumns, fields)
		if err != nil {
			return nil, err
		}
		d := demandRow(row)
		d.Line, _ = in.FieldPos(0)
		if first, twice := lines[d.Name]; twice && row.err == nil {
			row.fail("name", "%q is on line %d already", d.Name, first)
		}
		if row.err != nil {
			return nil, row.err
		}
		if len(out) >= maxRows {
			return nil, &TableError{d.Line, 1, fmt.Errorf("more than %d rows", maxRows)}
		}
		lines[d.Name] = d.Line
		out = append(out, d)
	}
}

func demandRow(r *record) Demand {
	d := Demand{
		Name: r.text("name"),
		CPU:  v1alpha1.AmountOf(r.whole("cpu_milli", 0)), Memory: v1alpha1.AmountOf(r.whole("memory_mib", 0) << 20),
		GPUs: r.whole("num_gpu", 0), MilliGPU: r.whole("gpu_milli", 1000),
		Created: r.seconds("creation_time", 0), Deleted: r.seconds("deletion_time", -1),
		MaxHourly: r.price("max_hourly"),
	}
	if d.Name == "" {
		r.fail("name", "an intent needs a name")
	}
	if d.CPU.IsZero() && d.Memory.IsZero() && d.GPUs == 0 {
		r.fail("cpu_milli", "%s asks for nothing: neither cores, memory nor GPUs", d.Name)
	}
	if t := r.text("tenant"); t != "" {
		d.Tenant = r.name("tenant", t)
	}
	switch {
	case d.GPUs == 0:
		d.MilliGPU = 0
	case d.MilliGPU == 0 || d.MilliGPU > 1000:
		r.fail("gpu_milli", "%q: want 1 to 1000 thousandths of a card", r.text("gpu_milli"))
	case d.GPUs > 1 && d.MilliGPU < 1000:
		r.fail("gpu_milli", "%q: a share is of one card; num_gpu is %d", r.text("gpu_milli"), d.GPUs)
	}
	for _, m := range strings.Split(r.text("gpu_spec"), "|") {
		if m = strings.TrimSpace(m); m != "" {
			d.Models = append(d.Models, m)
		}
	}
	if d.Deleted >= 0 && d.Deleted < d.Created {
		r.fail("deletion_time", "%q is before creation_time %q", r.text("deletion_time"), r.text("creation_time"))
	}
	priority := r.whole("priority", 0)
	if priority > 1000 {
		r.fail("priority", "%d: want 0 to 1000", priority)
	}
	d.Priority = int32(min(priority, 1000)) //nolint:gosec // bounded above
	return d
}

// seconds is a column's time; traces write whole seconds, some with a fraction,
// which is cut.
func (r *record) seconds(column string, absent int64) int64 {
	s := r.text(column)
	if s == "" {
		return absent
	}
	d, err := v1alpha1.ParseDecimal(s)
	if err != nil || d.Sign() < 0 || d.Cmp(v1alpha1.DecimalFromInt(math.MaxInt32)) > 0 {
		r.fail(column, "%q is not a time in seconds from 0", s)
		return 0
	}
	return d.Micro() / 1_000_000
}
