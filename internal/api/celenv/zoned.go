package celenv

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/fleetbroker/fleetbroker/internal/api/zones"
)

// zoned is a call such as t.getHours("Europe/Rome"). CEL's own reads the zone's file each time,
// some 30 µs, of which one condition may ask a hundred times for each offer; and it knows
// "Local", which is another zone on each machine.
type zoned struct{ interpreter.InterpretableCall }

// inZones has the calls of CEL's functions of time that name a zone be zoned.
func inZones(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, is := i.(interpreter.InterpretableCall)
	if !is || len(call.Args()) != 2 {
		return i, nil
	}
	switch call.Function() {
	case "getFullYear", "getMonth", "getDayOfYear", "getDate", "getDayOfMonth", "getDayOfWeek", "getHours", "getMinutes", "getSeconds", "getMilliseconds":
		return zoned{call}, nil
	}
	return i, nil
}

// Exec implements interpreter.InterpretableV2.
func (z zoned) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := z.Args()
	return z.of(args[0].Exec(frame), args[1].Exec(frame))
}

// Eval implements interpreter.Interpretable.
func (z zoned) Eval(vars interpreter.Activation) ref.Val {
	args := z.Args()
	return z.of(args[0].Eval(vars), args[1].Eval(vars))
}

// of is the call's value.
func (z zoned) of(target, zone ref.Val) ref.Val {
	if types.IsUnknownOrError(target) {
		return target
	}
	if types.IsUnknownOrError(zone) {
		return zone
	}
	at, isTime := target.(types.Timestamp)
	name, isName := zone.(types.String)
	if !isTime || !isName {
		return types.MaybeNoSuchOverloadErr(target)
	}
	in, err := zoneOf(string(name))
	if err != nil {
		return types.NewErr("%q is no time zone", string(name))
	}
	return types.Timestamp{Time: at.In(in)}.Receive(z.Function(), "", nil)
}

// zoneOf is the zone of an IANA name, or of an offset such as +01:00 as CEL reads them.
func zoneOf(name string) (*time.Location, error) {
	before, after, isOffset := strings.Cut(name, ":")
	if !isOffset {
		return zones.Load(name)
	}
	hours, err := strconv.Atoi(before)
	if err != nil {
		return nil, err
	}
	minutes, err := strconv.Atoi(after)
	if err != nil {
		return nil, err
	}
	if before[0] == '-' {
		minutes = -minutes
	}
	return time.FixedZone("", (hours*60+minutes)*60), nil
}
