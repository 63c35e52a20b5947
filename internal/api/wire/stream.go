package wire

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// StreamMethod is the gRPC method that carries the routes of HTTP over one
// stream (stream.proto).
const StreamMethod = "/fleetbroker.v1.Broker/Connect"

// Call is one request on a stream.
type Call struct {
	// Number tells calls of a stream apart, from 1.
	Number uint64
	// Method and Path, with its query, are HTTP's.
	Method, Path string
	Header       map[string]string
	Body         []byte
}

// StreamAnswer answers the Call of its number.
type StreamAnswer struct {
	Number uint64
	// Status is HTTP's.
	Status uint32
	Header map[string]string
	Body   []byte
}

// Codec encodes both messages as stream.proto lays them down. It is a codec of
// google.golang.org/grpc.
type Codec struct{}

// Name is that of protobuf, so that generated clients understand it.
func (Codec) Name() string { return "proto" }

// Marshal implements the codec.
func (Codec) Marshal(v any) ([]byte, error) {
	var out []byte
	switch m := v.(type) {
	case *Call:
		out = number(out, 1, m.Number)
		out = text(out, 2, m.Method)
		out = text(out, 3, m.Path)
		out = header(out, 4, m.Header)
		return text(out, 5, string(m.Body)), nil
	case *StreamAnswer:
		out = number(out, 1, m.Number)
		out = number(out, 2, uint64(m.Status))
		out = header(out, 3, m.Header)
		return text(out, 4, string(m.Body)), nil
	}
	return nil, fmt.Errorf("encode %T: not a message of this stream", v)
}

// Unmarshal implements the codec. Fields that it does not know are skipped.
func (Codec) Unmarshal(data []byte, v any) error {
	switch m := v.(type) {
	case *Call:
		*m = Call{Header: map[string]string{}}
		return fields(data, func(n protowire.Number, value uint64, b []byte) error {
			switch n {
			case 1:
				m.Number = value
			case 2:
				m.Method = string(b)
			case 3:
				m.Path = string(b)
			case 4:
				return entry(m.Header, b)
			case 5:
				m.Body = append([]byte(nil), b...)
			}
			return nil
		})
	case *StreamAnswer:
		*m = StreamAnswer{Header: map[string]string{}}
		return fields(data, func(n protowire.Number, value uint64, b []byte) error {
			switch n {
			case 1:
				m.Number = value
			case 2:
				m.Status = uint32(value & 0xffff)
			case 3:
				return entry(m.Header, b)
			case 4:
				m.Body = append([]byte(nil), b...)
			}
			return nil
		})
	}
	return fmt.Errorf("decode %T: not a message of this stream", v)
}

func number(out []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return out
	}
	return protowire.AppendVarint(protowire.AppendTag(out, field, protowire.VarintType), n)
}

func text(out []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return out
	}
	return protowire.AppendString(protowire.AppendTag(out, field, protowire.BytesType), s)
}

func header(out []byte, field protowire.Number, h map[string]string) []byte {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		one := text(text(nil, 1, name), 2, h[name])
		out = protowire.AppendBytes(protowire.AppendTag(out, field, protowire.BytesType), one)
	}
	return out
}

func entry(into map[string]string, b []byte) error {
	var name, value string
	err := fields(b, func(n protowire.Number, _ uint64, b []byte) error {
		switch n {
		case 1:
			name = string(b)
		case 2:
			value = string(b)
		}
		return nil
	})
	into[name] = value
	return err
}

// fields calls fn for each field of a message, with its number or its bytes.
func fields(data []byte, fn func(n protowire.Number, value uint64, b []byte) error) error {
	for len(data) > 0 {
		n, kind, size := protowire.ConsumeTag(data)
		if size < 0 {
			return fmt.Errorf("decode a message: %w", protowire.ParseError(size))
		}
		data = data[size:]
		var value uint64
		var b []byte
		switch kind {
		case protowire.VarintType:
			value, size = protowire.ConsumeVarint(data)
		case protowire.BytesType:
			b, size = protowire.ConsumeBytes(data)
		default:
			size = protowire.ConsumeFieldValue(n, kind, data)
		}
		if size < 0 {
			return fmt.Errorf("decode a message: %w", protowire.ParseError(size))
		}
		if err := fn(n, value, b); err != nil {
			return err
		}
		data = data[size:]
	}
	return nil
}
