package v1alpha1

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"
)

// Duration is a length of wall-clock time, written as Go writes it: "72h",
// "10m", "20ms". People may write days of 24 hours and weeks of seven days too: "3d",
// "1w", "1d12h".
type Duration struct{ time.Duration }

// daysForm are the days and weeks that a duration may begin with.
var daysForm = regexp.MustCompile(`^(?:(\d{1,5})w)?(?:(\d{1,5})d)?`)

// ParseDuration reads a duration that is not negative.
func ParseDuration(s string) (Duration, error) {
	m := daysForm.FindStringSubmatch(s)
	weeks, _ := strconv.Atoi(m[1]) // "" is none
	days, _ := strconv.Atoi(m[2])
	if days += 7 * weeks; days > 106_751 { // more are negative
		return Duration{}, fmt.Errorf("%q is longer than the 106751 days that a duration can have", s)
	}
	long := time.Duration(days) * 24 * time.Hour
	if rest := s[len(m[0]):]; rest != "" || m[0] == "" {
		v, err := time.ParseDuration(rest)
		if err != nil || v < 0 || rest[0] == '+' || long > math.MaxInt64-v {
			return Duration{}, fmt.Errorf("%q is not a duration: write a number with a unit, such as 72h, 3d, 1w, 10m or 20ms", s)
		}
		long += v
	}
	return Duration{long}, nil
}

// UnmarshalJSON reads a duration that is not negative.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%s is not a duration: write a number with a unit in quotes or plain, such as 72h, 3d or 10m", b)
	}
	if s == "" {
		*d = Duration{}
		return nil
	}
	v, err := ParseDuration(s)
	if err != nil {
		return err
	}
	*d = v
	return nil
}

// MarshalJSON writes the shortest form: 72h, 1h30m, 20ms.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// String is the shortest form, without zero minutes and seconds.
func (d Duration) String() string {
	s := d.Duration.String()
	for _, tail := range []string{"m0s", "h0m"} {
		if len(s) > len(tail) && s[len(s)-len(tail):] == tail {
			s = s[:len(s)-len(tail)+1]
		}
	}
	return s
}

// Time is an instant in UTC to the second, as every time in a file is.
type Time struct{ time.Time }

// TimeOf is t in UTC, cut to the second.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Second)}
}

// UnmarshalJSON reads RFC 3339.
func (t *Time) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%s is not a time: write RFC 3339, such as 2026-12-01T08:00:00Z", b)
	}
	if s == "" {
		*t = Time{}
		return nil
	}
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return fmt.Errorf("%q is not a time: write RFC 3339, such as 2026-12-01T08:00:00Z", s)
	}
	if *t = TimeOf(v); t.IsZero() || t.Year() < 0 || t.Year() > 9999 { // in UTC, which could not be read again
		return fmt.Errorf("%q is no time: leave it out for none", s)
	}
	return nil
}

// MarshalJSON writes RFC 3339 in UTC; the zero time is "".
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte(`""`), nil
	}
	return json.Marshal(t.UTC().Format(time.RFC3339))
}

// Date is a calendar day.
type Date struct{ time.Time }

// UnmarshalJSON reads 2026-11-01.
func (d *Date) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%s is not a date: write year-month-day, such as 2026-11-01", b)
	}
	v, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return fmt.Errorf("%q is not a date: write year-month-day, such as 2026-11-01", s)
	}
	*d = Date{v}
	return nil
}

// MarshalJSON writes 2026-11-01.
func (d Date) MarshalJSON() ([]byte, error) { return json.Marshal(d.Format(time.DateOnly)) }

// Window is a recurring part of the week: from `from` to `to` in timezone, on
// the days on which `from` falls. `to` at or before `from` lies on the next
// day; "24:00" is the day's end.
type Window struct {
	// Days on which the window opens: Mon, Tue, Wed, Thu, Fri, Sat, Sun. Empty means every day.
	Days []string `json:"days,omitempty"`
	// From is the opening time of day, such as "20:00".
	From string `json:"from"`
	// To is the closing time of day, such as "06:00" or "24:00".
	To string `json:"to"`
	// Timezone is an IANA name such as Europe/Rome; the default is the fleet's.
	Timezone string `json:"timezone,omitempty"`
}
