package ui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/ui/view"
	"github.com/fleetbroker/fleetbroker/schemas/client"
)

// direct sends a client's requests to the dashboard, and keeps the last answer.
type direct struct {
	d    *daemon
	last []byte
}

func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.d.ui.ServeHTTP(w, r)
	d.last = w.Body.Bytes()
	res := w.Result()
	res.Body = io.NopCloser(bytes.NewReader(d.last))
	return res, nil
}

// TestPublicTypes: the public client reads each page whole: what it read, written again, is
// what the daemon sent, to the last field.
func TestPublicTypes(t *testing.T) {
	d, b := newDaemon(t), small()
	d.history(b)
	d.show(b, view.Notice{Level: "warning", Text: "a notice"})
	to := &direct{d: d}
	c, err := client.New(client.Options{URL: "http://127.0.0.1:1", Transport: to})
	if err != nil {
		t.Fatal(err)
	}
	contract := ""
	for k := range b.W.Ledger.Contracts() {
		if k.Spec.Intent.Name == "train" {
			contract = k.Metadata.Name
		}
	}
	args := map[string][]string{
		"Intent": {"vision", "train"}, "Offers": {"nlp", "giant"}, "Contract": {contract}, "Flavor": {"paris", "h100-pool"}, "Provider": {"milan"},
		"Tenant": {"vision"}, "Peering": {"rome", "paris"}, "Simulation": {aJob},
	}
	pages := 0
	v := reflect.ValueOf(c)
	for i := range v.NumMethod() {
		name, m := v.Type().Method(i).Name, v.Method(i)
		of := m.Type()
		if last := of.NumIn() - 1; last < 1 || of.In(last) != reflect.TypeFor[client.Query]() {
			continue
		}
		pages++
		in := []reflect.Value{reflect.ValueOf(context.Background())}
		for _, a := range args[name] {
			in = append(in, reflect.ValueOf(a))
		}
		if len(in)+1 != of.NumIn() {
			t.Errorf("%s: what shall be asked for?", name)
			continue
		}
		out := m.Call(append(in, reflect.ValueOf(client.Query{})))
		if err, _ := out[1].Interface().(error); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := json.Marshal(out[0].Interface())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := normal(t, again), normal(t, to.last); got != want {
			t.Errorf("%s: read and written again it is\n%s\nwant\n%s", name, got, want)
		}
	}
	if pages != 21 {
		t.Errorf("%d pages", pages)
	}
	_, err = c.Contract(t.Context(), "nobody", client.Query{})
	if !client.Is(err, "NotFound") || !strings.Contains(err.Error(), "404") {
		t.Errorf("a contract that there is not: %v", err)
	}
	d.look(view.Viewer{})
	if p, err := c.Fleet(t.Context(), client.Query{}); err != nil || !p.TotalsOnly {
		t.Errorf("to who sees totals: %+v, %v", p, err)
	}
}

// normal is JSON with its keys in order.
func normal(t *testing.T, text []byte) string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v: %.200s", err, text)
	}
	out, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
