package wires

import (
	"bytes"
	"context"
	"io"
	"strings"

	"golang.org/x/net/http2"
)

// Attacks are what one connection after the other does to a port, by what they are; they end
// with an error where the server has had enough, which is as well.
var Attacks = map[string]func(ctx context.Context, p *Port) error{
	"requests that are reset at once": func(ctx context.Context, p *Port) error {
		w, err := p.Open(ctx)
		block := p.Request("GET", p.Get)
		for i := 0; i < 6_000 && err == nil; i++ {
			id := w.next
			if err = w.Send(block, true); err == nil {
				err = w.WriteRSTStream(id, http2.ErrCodeCancel)
			}
		}
		return err
	},
	"a header without end": func(ctx context.Context, p *Port) error {
		w, err := p.Open(ctx)
		if err != nil {
			return err
		}
		err = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.Request("GET", p.Get), EndStream: true})
		part := bytes.Repeat([]byte{0x82}, maxFrame) // :method GET, again and again
		for i := 0; i < 10_000 && err == nil; i++ {
			err = w.WriteContinuation(1, false, part)
		}
		return err
	},
	"empty continuations": func(ctx context.Context, p *Port) error {
		w, err := p.Open(ctx)
		if err != nil {
			return err
		}
		err = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.Request("GET", p.Get), EndStream: true})
		for i := 0; i < 20_000 && err == nil; i++ {
			err = w.WriteContinuation(1, false, nil)
		}
		return err
	},
	"settings without end": func(ctx context.Context, p *Port) error {
		w, err := p.Open(ctx)
		for i := 0; i < 12_000 && err == nil; i++ {
			err = w.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: uint32(i % 2 * 4096)}) //nolint:gosec // one of two
		}
		return err
	},
	"pings without end": func(ctx context.Context, p *Port) error {
		w, err := p.Open(ctx)
		for i := 0; i < 12_000 && err == nil; i++ {
			err = w.WritePing(false, [8]byte{})
		}
		return err
	},
	"frames of no kind, and windows": func(ctx context.Context, p *Port) error {
		w, err := p.Open(ctx)
		for i := 0; i < 20_000 && err == nil; i++ {
			if err = w.WriteRawFrame(0xee, 0xff, uint32(i), bytes.Repeat([]byte{0xff}, 64)); err == nil { //nolint:gosec // small
				err = w.WriteWindowUpdate(0, 1)
			}
		}
		return err
	},
	"headers that are none": func(ctx context.Context, p *Port) error {
		for range 20 {
			w, err := p.Open(ctx)
			if err != nil {
				return err
			}
			if err := w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: bytes.Repeat([]byte{0xff}, 100), EndStream: true, EndHeaders: true}); err != nil {
				return err
			}
		}
		return nil
	},
	"slow headers": func(ctx context.Context, p *Port) error {
		for range 40 {
			conn, err := p.dial(ctx, "http/1.1")
			if err != nil {
				return err
			}
			if _, err := io.WriteString(conn, "GET "+p.Get+" HTTP/1.1\r\nHost: a\r\nX-Slow: "); err != nil {
				return err
			}
		}
		return nil
	},
	"slow bodies": func(ctx context.Context, p *Port) error {
		for range 20 {
			w, err := p.Open(ctx)
			if err != nil {
				return err
			}
			for range 32 {
				id := w.next
				if err := w.Send(p.Request("POST", p.Post, "content-length", "100000", "x-hub-signature-256", "sha256="+strings.Repeat("00", 32)), false); err != nil {
					return err
				}
				if err := w.WriteData(id, false, []byte("{")); err != nil {
					return err
				}
			}
		}
		return nil
	},
	"many connections that say nothing": func(ctx context.Context, p *Port) error {
		for range 50 {
			if _, err := p.dial(ctx, "h2"); err != nil {
				return err
			}
		}
		return nil
	},
	"a header of a mebibyte": func(ctx context.Context, p *Port) error {
		conn, err := p.dial(ctx, "http/1.1")
		if err != nil {
			return err
		}
		_, err = io.WriteString(conn, "GET "+p.Get+" HTTP/1.1\r\nHost: a\r\nX-Fill: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
		return err
	},
	"requests that are no HTTP": func(ctx context.Context, p *Port) error {
		for _, text := range []string{"\x16\x03\x01\x02\x00", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", strings.Repeat("\r\n", 50_000), "GET http://[::1 HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nffffffffffffffff\r\n"} {
			conn, err := p.dial(ctx, "http/1.1")
			if err != nil {
				return err
			}
			if _, err := io.WriteString(conn, text); err != nil {
				return err
			}
		}
		return nil
	},
}
