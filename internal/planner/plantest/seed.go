package plantest

import "flag"

// Pin lets a package's properties draw the same worlds in every run, so that a change is
// judged by itself and not by luck: each property checks so many worlds ("250"). Others
// come with -rapid.seed=N, more with -rapid.checks=N. Call it from TestMain, which a test
// that draws worlds belongs to; it parses the flags.
func Pin(checks string) {
	flag.Parse()
	for name, value := range map[string]string{"rapid.seed": "20261120", "rapid.checks": checks} {
		f := flag.Lookup(name)
		if f == nil {
			panic("plantest: no -" + name + ": the package has no property of pgregory.net/rapid")
		}
		if f.Value.String() == f.DefValue {
			if err := f.Value.Set(value); err != nil {
				panic(err)
			}
		}
	}
}
