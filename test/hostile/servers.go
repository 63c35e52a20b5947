package hostile

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's
	"encoding/binary"
	"fmt"
	"strings"
)

const someCommit = "0123456789012345678901234567890123456789"

// GitServer is what a git server answers to the question for refs, and to that
// for a pack. What begins with Endless is sent after it again and again.
type GitServer struct{ Name, Refs, Pack string }

// Endless stands before what a server sends until nobody listens any more.
const Endless = "\xff\xffendless\xff\xff"

// helloName is git's name of the file "hello".
var helloName = func() string {
	sum := sha1.Sum([]byte("blob 5\x00hello")) //nolint:gosec // git's
	return string(sum[:])
}()

// pkt is a line of git's protocol.
func pkt(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

func advertised(refs ...string) string {
	var out strings.Builder
	out.WriteString(pkt("# service=git-upload-pack\n") + "0000")
	for i, r := range refs {
		if i == 0 {
			r += "\x00side-band-64k ofs-delta agent=git/2.50"
		}
		out.WriteString(pkt(someCommit + " " + r + "\n"))
	}
	return out.String() + "0000"
}

// banded is a pack in bands as a server sends it.
func banded(pack string) string {
	out := pkt("NAK\n")
	for len(pack) > 0 {
		n := min(len(pack), 65000)
		out += pkt("\x01" + pack[:n])
		pack = pack[n:]
	}
	return out + "0000"
}

// packed is an entry of a pack: its size as stated, and its data.
func packed(kind byte, told int, data []byte) string {
	head := []byte{kind<<4 | byte(told&15)}
	for rest := told >> 4; rest > 0; rest >>= 7 {
		head[len(head)-1] |= 0x80
		head = append(head, byte(rest&0x7f))
	}
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(data) // into memory
	_ = w.Close()
	return string(head) + b.String()
}

// packOf is a pack that tells of so many objects.
func packOf(count uint32, entries ...string) string {
	body := "PACK\x00\x00\x00\x02" + string(binary.BigEndian.AppendUint32(nil, count)) + strings.Join(entries, "")
	sum := sha1.Sum([]byte(body)) //nolint:gosec // git's
	return body + string(sum[:])
}

// GitServers are hostile.
func GitServers() []GitServer {
	main := advertised("refs/heads/main")
	blob := packed(3, 5, []byte("hello"))
	huge := packed(3, 512<<20, make([]byte, 8<<20))
	zeros := packed(3, 64<<20, make([]byte, 64<<20))
	many := make([]string, 200_000)
	for i := range many {
		many[i] = fmt.Sprintf("refs/heads/b%d", i)
	}
	return []GitServer{
		{"empty", "", ""}, {"html", "<html>", ""}, {"nul", strings.Repeat("\x00", 1<<20), ""}, {"flush", "0000", ""}, {"length-short", "0001", ""}, {"length-letters", "zzzz", ""},
		{"length-lies", "fff0# service=git-upload-pack\n", ""}, {"cut", main[:len(main)/2], ""}, {"no-service", "0000" + pkt(someCommit+" refs/heads/main\n") + "0000", ""},
		{"error", pkt("ERR \x1b[2J\x1b]0;owned\x07no\n"), ""}, {"hash-short", pkt("# service=git-upload-pack\n") + "0000" + pkt("0123 refs/heads/main\x00\n") + "0000", ""},
		{"name-escape", advertised("refs/heads/main", "refs/heads/\x1b[2J", "refs/heads/a\nInputs: 0"), ""}, {"name-path", advertised("refs/heads/main", "refs/heads/../../../../etc/passwd", "../x", "HEAD.lock"), ""},
		{"name-long", advertised("refs/heads/main", "refs/heads/"+strings.Repeat("x", 60_000)), ""}, {"name-twice", advertised("refs/heads/main", "refs/heads/main"), ""}, {"refs-many", advertised(append([]string{"refs/heads/main"}, many...)...), ""},
		{"capabilities-long", pkt("# service=git-upload-pack\n") + "0000" + pkt(someCommit+" refs/heads/main\x00"+strings.Repeat("a=b ", 15_000)+"\n") + "0000", ""},
		{"pack-none", main, ""}, {"pack-nak", main, pkt("NAK\n")}, {"pack-words", main, "not a pack"}, {"pack-error", main, pkt("NAK\n") + pkt("\x03\x1b[2Jdied\n")},
		{"pack-cut", main, banded(packOf(1, blob))[:30]}, {"pack-empty", main, banded(packOf(0))}, {"pack-count-lies", main, banded(packOf(4_000_000_000, blob))}, {"pack-size-lies", main, banded(packOf(1, huge))},
		{"pack-checksum", main, banded(packOf(1, blob)[:20] + strings.Repeat("x", 20))}, {"pack-other", main, banded(packOf(1, blob))}, {"pack-zeros", main, banded(packOf(1, zeros))},
		{"pack-type", main, banded(packOf(1, packed(5, 5, []byte("hello"))))}, {"pack-delta-alone", main, banded(packOf(1, packed(7, 40, bytes.Repeat([]byte("x"), 40))))}, {"pack-delta-back", main, banded(packOf(1, packed(6, 5, []byte("hello"))))},
		{"bands-words", main, pkt("NAK\n") + strings.Repeat(pkt("\x02"+strings.Repeat("x", 60_000)), 500)}, {"bands-empty", main, pkt("NAK\n") + strings.Repeat(pkt("\x01"), 100_000)}, {"bands-unknown", main, pkt("NAK\n") + pkt("\x09x")},
		{"refs-endless", main[:len(main)-4] + Endless + pkt(someCommit+" refs/heads/b\n"), ""}, {"refs-endless-names", main[:len(main)-4] + Endless + pkt(someCommit+" refs/heads/"+strings.Repeat("x", 60_000)+"\n"), ""},
		{"shallow-endless", main[:len(main)-4] + Endless + pkt("shallow "+someCommit+"\n"), ""}, {"html-endless", Endless + "<p>", ""}, {"acks-endless", main, Endless + pkt("ACK "+someCommit+"\n")},
		{"bands-endless", main, pkt("NAK\n") + pkt("\x01PACK") + Endless + pkt("\x01"+strings.Repeat("x", 60_000))},
		{"bands-words-endless", main, pkt("NAK\n") + pkt("\x01PACK") + Endless + strings.Repeat(pkt("\x02still counting\r"), 1_000)}, {"bands-empty-endless", main, pkt("NAK\n") + pkt("\x01PACK") + Endless + strings.Repeat(pkt("\x01"), 1_000)},
		{"objects-endless", main, pkt("NAK\n") + pkt("\x01PACK\x00\x00\x00\x02\xff\xff\xff\xff") + Endless + pkt("\x01"+strings.Repeat("\x31\x78\x9c\xab\x00\x00\x00\x79\x00\x79", 6_000))},
		{"pack-thin", main, banded(packOf(1, "\x74"+strings.Repeat("\x5a", 20)+packed(3, 4, []byte("\x05\x05\x90\x05"))[1:]))}, {"pack-thin-known", main, banded(packOf(2, blob, packed(7, 4, nil)[:1]+helloName+packed(3, 4, []byte("\x05\x05\x90\x05"))[1:]))},
		{"pack-trailing", main, banded(packOf(1, blob) + strings.Repeat("x", 1<<20))}, {"pack-twice", main, banded(packOf(1, blob) + packOf(1, blob))}, {"pack-version", main, banded("PACK\x00\x00\x00\x09\x00\x00\x00\x01" + blob)},
		{"pack-self", main, banded(packOf(1, "\x64\x00"+packed(3, 4, []byte("\x05\x05\x90\x05"))[1:]))}, {"pack-unbanded", main, pkt("NAK\n") + packOf(1, blob)}, {"pack-shallow", main, pkt("shallow "+someCommit+"\n") + "0000" + banded(packOf(1, blob))},
		{"pack-tag", main, banded(packOf(1, packed(4, 5, []byte("hello"))))}, {"pack-tree", main, banded(packOf(1, packed(2, 40, []byte("100644 ../x\x00aaaaaaaaaaaaaaaaaaaa40000 .git\x00"))))}, {"pack-commit", main, banded(packOf(1, packed(1, 5, []byte("tree "))))},
		{"version-2", pkt("# service=git-upload-pack\n") + "0000" + pkt("version 2\n") + pkt("ls-refs=unborn\n") + pkt("fetch=shallow wait-for-done filter\n") + "0000", ""}, {"sha256", pkt("# service=git-upload-pack\n") + "0000" + pkt(someCommit+someCommit[:24]+" refs/heads/main\x00object-format=sha256\n") + "0000", ""},
		{"symref-circle", pkt("# service=git-upload-pack\n") + "0000" + pkt(someCommit+" HEAD\x00symref=HEAD:HEAD symref=HEAD:refs/heads/main symref=refs/heads/main:HEAD symref=:\n") + pkt(someCommit+" refs/heads/main\n") + "0000", ""},
		{"symrefs-many", pkt("# service=git-upload-pack\n") + "0000" + pkt(someCommit+" HEAD\x00"+strings.Repeat("symref=HEAD:refs/heads/main ", 2_300)+"\n") + "0000", ""},
		{"peeled-alone", advertised("refs/tags/v1^{}", "refs/heads/main^{}", "refs/heads/main"), ""}, {"zero", strings.ReplaceAll(advertised("refs/heads/main"), someCommit, strings.Repeat("0", 40)), ""}, {"no-refs", pkt("# service=git-upload-pack\n") + "0000" + pkt(strings.Repeat("0", 40)+" capabilities^{}\x00side-band-64k\n") + "0000", ""},
		{"shallow-advertised", main[:len(main)-4] + strings.Repeat(pkt("shallow "+someCommit+"\n"), 50_000) + "0000", ""}, {"words-without-end-of-line", pkt("# service=git-upload-pack") + "0000" + pkt(someCommit+" refs/heads/main\x00") + "0000", ""},
		{"flushes-endless", main[:len(main)-4] + Endless + "0000", Endless + "0000"}, {"pkts-empty-endless", main, Endless + "0004"},

		{"naks", main, strings.Repeat(pkt("NAK\n"), 100_000)}, {"shallow", main, strings.Repeat(pkt("shallow "+someCommit+"\n"), 50_000)},
	}
}
