package pack_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/pack"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// rows returns a life of an object with these values; the last row is followed by another.
func rows(values ...string) (all []sqlstore.Row) {
	for i, v := range values {
		all = append(all, sqlstore.Row{
			Key: sqlstore.Key{Resource: "pods", Namespace: "a", Name: "b"}, Revision: int64(100 + 7*i), Created: 93, Superseded: int64(107 + 7*i),
			Value: []byte(v), WrittenAt: start.Add(time.Duration(i) * 10 * time.Second),
		})
	}
	return all
}

func fold(t testing.TB, last *pack.Pack, in []sqlstore.Row) []pack.Pack {
	t.Helper()
	packs, _, err := pack.PackRows(last, in)
	if err != nil {
		t.Fatal(err)
	}
	return packs
}

func wantRows(t testing.TB, packs []pack.Pack, want []sqlstore.Row) {
	t.Helper()
	var got []sqlstore.Row
	for i := range packs {
		if !json.Valid(packs[i].Text) {
			t.Fatalf("a pack is no JSON: %s", packs[i].Text)
		}
		rows, err := packs[i].Rows()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, rows...)
		for _, r := range rows {
			held := r.Revision < r.Superseded // and not a delete
			for _, revision := range []int64{r.Revision, max(r.Revision, r.Superseded-1)} {
				at, found, err := packs[i].At(revision)
				if err != nil || found != held || held && fmt.Sprint(at) != fmt.Sprint(r) {
					t.Fatalf("at %d the pack has %+v, %v, %v; want %+v", revision, at, found, err, r)
				}
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("unfolded\n%v\nwant\n%v", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	lease := `{"spec":{"holder":"n","renewTime":"2026-03-01T12:00:%02d.123456Z"},"metadata":{"managedFields":[{"time":"2026-03-01T12:00:%02dZ"}]},"status":{}}`
	binary := "rowlock:enc:1:aescbc:key1:\x00\xff"
	for name, values := range map[string][]string{
		"one":                  {`{"a":1}`},
		"the same":             {`{"a":1}`, `{"a":1}`, `{"a":1}`},
		"a time":               {fmt.Sprintf(lease, 1, 1), fmt.Sprintf(lease, 11, 11), fmt.Sprintf(lease, 21, 21)},
		"longer and shorter":   {fmt.Sprintf(lease, 1, 1), fmt.Sprintf(lease, 1, 100000), fmt.Sprintf(lease, 1234567890, 1), fmt.Sprintf(lease, 1, 1)},
		"something else":       {`{"a":1}`, `{"b":"` + strings.Repeat("x", 500) + `"}`, `{"c":"` + strings.Repeat("y", 500) + `"}`},
		"not ASCII":            {`{"a":"ä€😀","b":"2026"}`, `{"a":"ä€😀","b":"2027"}`, `{"a":"ö€😀","b":"2027ü"}`, `{"a":"","b":"2027"}`},
		"then not ASCII":       {`{"a":"abcdefghijklmnop","b":"2026"}`, `{"a":"äbcdefghijklmnop","b":"2026"}`, `{"a":"abcdefghijklmnop","b":"2026"}`},
		"escapes":              {`{"a":"\"\\\u0000\n<&>\u2028"}`, `{"a":"\"\\\u0000\n<&>\u2029"}`, "{\"a\":\"\u2028\u007f\"}"},
		"no JSON":              {"", "\x00\xff", "{cut", binary, binary},
		"encrypted, then open": {binary, `{"a":1}`, `{"a":2}`, binary},
		"no UTF-8":             {"{\"a\":\"\xff\"}", `{"a":"b"}`},
		"spaces":               {" {\"a\": 1.50}\n", " {\"a\": 1.51}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			in := rows(values...)
			in[len(in)-1].Deleted, in[len(in)-1].Superseded = true, in[len(in)-1].Revision
			in[0].ExpiresAt = start.Add(time.Hour)
			wantRows(t, fold(t, nil, in), in)
		})
	}
}

// TestRandomEdits changes texts at random and wants them back.
func TestRandomEdits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune(`abcdefgh0123456789{}":, ä€😀`)
	quoted := func(text []rune) string {
		b, _ := json.Marshal(string(text))
		return string(b)
	}
	for round := range 300 {
		text := make([]rune, rng.IntN(600))
		for i := range text {
			text[i] = alphabet[rng.IntN(len(alphabet)-3*(round%2))]
		}
		values := []string{quoted(text)}
		for range 20 {
			next := append([]rune(nil), text...)
			for range rng.IntN(4) {
				from := rng.IntN(len(next) + 1)
				to := min(len(next), from+rng.IntN(20))
				in := text[:rng.IntN(min(len(text), 20)+1)]
				next = append(append(append([]rune(nil), next[:from]...), in...), next[to:]...)
			}
			values = append(values, quoted(next))
		}
		in := rows(values...)
		wantRows(t, fold(t, nil, in), in)
	}
}

func TestLivesAndSizes(t *testing.T) {
	var values []string
	for i := range 300 {
		values = append(values, fmt.Sprintf(`{"renewTime":"2026-03-01T12:00:%05d","rest":"%s"}`, i, strings.Repeat("r", 400)))
	}
	in := rows(values...)
	packs := fold(t, nil, in)
	wantRows(t, packs, in)
	if len(packs) != 3 || packs[0].Count != pack.MaxRows {
		t.Fatalf("300 rows became %d packs, the first of %d", len(packs), packs[0].Count)
	}
	if per := len(packs[0].Text) / pack.MaxRows; per > 40 {
		t.Errorf("a row whose time alone changes takes %d bytes", per)
	}
	// Another life begins another pack.
	again := rows(values[:6]...)
	again[2].Deleted, again[2].Superseded = true, again[2].Revision
	for i := 3; i < 6; i++ {
		again[i].Created = again[3].Revision
	}
	packs = fold(t, nil, again)
	wantRows(t, packs, again)
	if len(packs) != 2 || !packs[0].Deleted || packs[1].Created != again[3].Revision {
		t.Fatalf("two lives became %+v", packs)
	}
	large := rows(`"`+strings.Repeat("l", 400<<10)+`"`, `"`+strings.Repeat("m", 400<<10)+`"`)
	if packs = fold(t, nil, large); len(packs) != 2 {
		t.Fatalf("two large values became %d packs", len(packs))
	}
	wantRows(t, packs, large)
}

func TestExtending(t *testing.T) {
	var values []string
	for i := range 150 {
		values = append(values, fmt.Sprintf(`{"time":"%05d","rest":"%s"}`, i, strings.Repeat("r", 100)))
	}
	in := rows(values...)
	packs := fold(t, nil, in[:60])
	packs, extends, err := pack.PackRows(&packs[0], in[60:])
	if err != nil || !extends || len(packs) != 2 || packs[0].Count != pack.MaxRows {
		t.Fatalf("extending gave %d packs, %v, %v", len(packs), extends, err)
	}
	wantRows(t, packs, in)
	gap := rows(values[:2]...)
	gap[0].Revision, gap[0].Superseded = 1, 3
	first := fold(t, nil, gap[:1])
	if _, extends, _ := pack.PackRows(&first[0], gap[1:]); extends {
		t.Fatal("a pack was extended by rows that do not go on from it")
	}
}

// TestDamage changes each byte, and each part of a pack other than the text: no read is answered from
// a pack that is not as it was written.
func TestDamage(t *testing.T) {
	in := rows(`{"time":"00001","rest":"somewhat longer"}`, `{"time":"00002","rest":"somewhat longer"}`)
	in[1].ExpiresAt = start.Add(time.Hour)
	whole := fold(t, nil, in)[0]
	wantDamaged := func(what string, bad pack.Pack) {
		t.Helper()
		var corrupt *sqlstore.CorruptError
		got, err := bad.Rows()
		if err == nil && fmt.Sprint(got) != fmt.Sprint(in) || err != nil && !errors.As(err, &corrupt) {
			t.Errorf("with %s another its rows are %v, %v", what, got, err)
		}
		for _, r := range in {
			row, found, err := bad.At(r.Revision)
			if err == nil && found && fmt.Sprint(row) != fmt.Sprint(r) || err != nil && !errors.As(err, &corrupt) {
				t.Errorf("with %s another the row of %d is %v, %v", what, r.Revision, row, err)
			}
		}
	}
	silent := 0
	for i := range whole.Text {
		for _, bit := range []byte{1, 2, 128} {
			bad := whole
			bad.Text = bytes.Clone(whole.Text)
			bad.Text[i] ^= bit
			wantDamaged(fmt.Sprintf("byte %d", i), bad)
			if _, err := bad.Rows(); err == nil {
				silent++ // no checksum is found, and the values are right
			}
		}
	}
	if silent > 3*len(`"all"`) {
		t.Errorf("%d changes are not noticed", silent)
	}
	for what, change := range map[string]func(*pack.Pack){
		"its key": func(p *pack.Pack) { p.Key.Name = "c" }, "its life": func(p *pack.Pack) { p.Created++ }, "its end": func(p *pack.Pack) { p.Until++ },
		"its first revision": func(p *pack.Pack) { p.First-- }, "its time": func(p *pack.Pack) { p.Written = start.Add(time.Second) },
		"its delete": func(p *pack.Pack) { p.Deleted = true }, "its count": func(p *pack.Pack) { p.Count = 1 },
	} {
		bad := whole
		change(&bad)
		wantDamaged(what, bad)
	}
}

// TestHostileEdits unfolds packs with a right checksum, and lists that fit nothing.
func TestHostileEdits(t *testing.T) {
	bad := fold(t, nil, rows(`{}`))[0]
	for _, list := range []string{`[5]`, `[-9223372036854775808]`, `[9223372036854775807]`, `[1,9223372036854775807]`, `["abc"]`, `[null]`, `[1.5]`, `[[1]]`, `{}5`} {
		for _, base := range []string{"ab", "ä", "\\ud800"} {
			bad.Text = fmt.Appendf(nil, `{"base":"%s","rows":[[0,0,%s]],"sum":0`, base, list)
			bad.Sign()
			if row, _, err := bad.At(bad.First); err == nil || strings.Contains(err.Error(), "checksum") {
				t.Errorf("%s and the base %q gave %q, %v", list, base, row.Value, err)
			}
		}
	}
}

// TestWithoutChecksum reads a pack as it was written before there was one of the whole: each read
// of it looks at all values.
func TestWithoutChecksum(t *testing.T) {
	in := rows(`{"time":"00001"}`, `{"time":"00002"}`)
	p := fold(t, nil, in)[0]
	p.Text = append(p.Text[:bytes.LastIndex(p.Text, []byte(`,"all":`))], '}')
	wantRows(t, []pack.Pack{p}, in)
	p.Text = bytes.Replace(p.Text, []byte("00001"), []byte("00003"), 1)
	if row, _, err := p.At(in[1].Revision); err == nil {
		t.Errorf("a damaged pack gave %s", row.Value)
	}
}

// TestHostileSizes unfolds packs that were made to become large, or with false validities.
func TestHostileSizes(t *testing.T) {
	p := fold(t, nil, rows(`{"a":1}`))[0]
	many := func(n, base int) pack.Pack {
		p := p
		p.Until, p.Count = p.First+int64(n), n
		p.Text = fmt.Appendf(nil, `{"base":%q,"rows":[[0,0,[]]`, strings.Repeat("b", base))
		for i := 1; i < n; i++ {
			p.Text = fmt.Appendf(p.Text, `,[%d,0,[]]`, i)
		}
		p.Text = append(p.Text, `]}`...)
		return p
	}
	for name, bad := range map[string]pack.Pack{"many rows": many(100000, 10), "large rows": many(pack.MaxRows, 4<<20)} {
		var corrupt *sqlstore.CorruptError
		if _, err := bad.Rows(); !errors.As(err, &corrupt) || corrupt.Key != p.Key {
			t.Errorf("%s gave %v", name, err)
		}
	}
	for _, offset := range []int{-7, 1, 1 << 40} {
		p.Text = fmt.Appendf(nil, `{"base":"{}","rows":[[%d,0,[]]],"sum":0`, offset)
		p.Sign()
		if row, found, err := p.At(p.First); offset > 0 && err == nil {
			t.Errorf("a row %d behind its pack held: %v, %v", offset, row, found)
		}
	}
}

// TestDamagedBefore packs rows behind a pack that is damaged.
func TestDamagedBefore(t *testing.T) {
	in := rows(`{"a":1}`, `{"a":2}`, `{"a":3}`)
	last := fold(t, nil, in[:1])[0]
	last.Text = []byte("{")
	packs, extends, err := pack.PackRows(&last, in[1:])
	if err != nil || extends {
		t.Fatalf("packing behind a damaged pack gave %v, %v", extends, err)
	}
	wantRows(t, packs, in[1:])
	in[1].Deleted, in[1].Revision, in[1].Superseded = true, last.Until, last.Until
	var corrupt *sqlstore.CorruptError
	if _, _, err = pack.PackRows(&last, in[1:2]); !errors.As(err, &corrupt) {
		t.Fatalf("a delete that belongs into a damaged pack gave %v", err)
	}
}

// TestLargeValues takes little memory to see that large values do not lie in one pack.
func TestLargeValues(t *testing.T) {
	var large []string
	for i := range 4 {
		large = append(large, fmt.Sprintf(`"%s%d%s"`, strings.Repeat("l", 200<<10), i, strings.Repeat("m", 200<<10)))
	}
	in := rows(large...)
	in[3].Deleted, in[3].Superseded = true, in[3].Revision
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	packs := fold(t, nil, in)
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 20 {
		t.Errorf("packing 4 values of 400 KiB took %d MiB", took)
	}
	wantRows(t, packs, in)
}

// BenchmarkAt reads one state from a full pack: of leases, and of encrypted values.
func BenchmarkAt(b *testing.B) {
	lease := `{"metadata":{"name":"node-0001","managedFields":[{"time":"2026-03-01T12:%02d:%02dZ","fieldsV1":"` + strings.Repeat("f", 600) + `"}]},"spec":{"renewTime":"2026-03-01T12:%02d:%02d.123456Z"}}`
	for name, head := range map[string]string{"plain": "", "encrypted": sqlstore.SealHead("aescbc", "key1") + "\x00"} {
		var values []string
		for i := range pack.MaxRows {
			values = append(values, head+fmt.Sprintf(lease, i/6, i%6*10, i/6, i%6*10))
		}
		p := fold(b, nil, rows(values...))[0]
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, found, err := p.At(p.Until - 1); err != nil || !found {
					b.Fatal(found, err)
				}
			}
			b.ReportMetric(float64(len(p.Text))/float64(p.Count), "bytes/state")
			b.ReportMetric(float64(len(values[0])), "bytes/value")
		})
		b.Run(name+", its checksum", func(b *testing.B) {
			for b.Loop() {
				p.Sign()
				p.Text = p.Text[:bytes.LastIndexByte(p.Text, ',')]
			}
		})
	}
}
