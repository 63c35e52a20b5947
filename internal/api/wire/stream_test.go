package wire

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestStreamMessagesComeBack(t *testing.T) {
	texts := rapid.MapOfN(rapid.StringN(1, 8, 16), rapid.String(), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		call := Call{
			Number: rapid.Uint64().Draw(t, "number"), Method: rapid.String().Draw(t, "method"), Path: rapid.String().Draw(t, "path"),
			Header: texts.Draw(t, "header"), Body: rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "body"),
		}
		answer := StreamAnswer{Number: call.Number, Status: rapid.Uint32Range(0, 599).Draw(t, "status"), Header: call.Header, Body: call.Body}
		var gotCall Call
		var gotAnswer StreamAnswer
		for _, pair := range []struct{ in, out any }{{&call, &gotCall}, {&answer, &gotAnswer}} {
			data, err := Codec{}.Marshal(pair.in)
			if err != nil {
				t.Fatal(err)
			}
			if err := (Codec{}).Unmarshal(data, pair.out); err != nil {
				t.Fatal(err)
			}
		}
		if len(call.Body) == 0 {
			call.Body, answer.Body = nil, nil
		}
		if !reflect.DeepEqual(call, gotCall) || !reflect.DeepEqual(answer, gotAnswer) {
			t.Fatalf("%+v came back as %+v, %+v as %+v", call, gotCall, answer, gotAnswer)
		}
	})
}

// FuzzStream: whatever a peer sends is a message or an error.
func FuzzStream(f *testing.F) {
	seed, err := Codec{}.Marshal(&Call{Number: 1, Method: "GET", Path: "/healthz", Header: map[string]string{"a": "b"}, Body: []byte("x")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		var call Call
		if (Codec{}).Unmarshal(data, &call) != nil {
			return
		}
		again, err := Codec{}.Marshal(&call)
		if err != nil {
			t.Fatal(err)
		}
		var twice Call
		if err := (Codec{}).Unmarshal(again, &twice); err != nil || !reflect.DeepEqual(call.Header, twice.Header) || call.Path != twice.Path {
			t.Fatalf("%+v came back as %+v, %v", call, twice, err)
		}
	})
}
