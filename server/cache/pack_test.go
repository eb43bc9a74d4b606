package cache_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// packedPods returns a cache with pods of 2 KB each, of which few fit as they are.
func packedPods(t testing.TB, n int, plain int64) (*cache.Cache, *log) {
	t.Helper()
	c, l := cache.NewWith(podCatalogue(), cache.Config{PlainBytes: plain, RingEvents: 10}), newLog()
	for i := range n {
		c.Apply([]sqlstore.Change{l.write(fmt.Sprintf("ns%d", i%7), fmt.Sprintf("p%d", i), largePod(fmt.Sprintf("p%d", i), i))})
	}
	return c, l
}

func largePod(name string, i int) string {
	return strings.TrimSuffix(pod(name, fmt.Sprintf("n%d", i%50), fmt.Sprintf(`"app":"a%d","tier":"t%d"`, i%20, i%3)), "}") +
		fmt.Sprintf(`,"status":{"phase":"Running","message":%q,"podIP":"10.0.%d.%d"}}`, strings.Repeat("what all of them say ", 100), i>>8, i&255)
}

// pack runs rounds until nothing is left to pack.
func pack(t testing.TB, c *cache.Cache) {
	t.Helper()
	for range 3 {
		c.Pack(t.Context())
	}
}

// seen returns all that readers can see of an item.
func seen(it *cache.Item) string {
	m := it.Meta()
	return fmt.Sprintf("%s/%s %d %d %s\n%s\n%s\n%s\n%s\n%s\n%v %v %s %v %d %d", it.Namespace, it.Name, it.Revision, it.Created(),
		it.JSON(), it.Line(), it.Body(), it.Peek(), it.AppendJSON([]byte("x")), it.AppendBody([]byte("y")), m.UID, m.Labels,
		it.Metadata(), m.Fields, it.Size(), it.BodySize())
}

func all(c *cache.Cache) (out []*cache.Item) {
	c.Snapshot("pods").Ascend("", "", "", func(it *cache.Item) bool { out = append(out, it); return true })
	return out
}

func TestPackedItemsReadAsBefore(t *testing.T) {
	c, _ := packedPods(t, 1200, 1<<20)
	before := map[*cache.Item]string{}
	for _, it := range all(c) {
		before[it] = seen(it)
	}
	pack(t, c)
	objects, plain, packed := c.Packed()
	if objects < 600 || packed > plain/8 {
		t.Fatalf("%d objects are packed, %d bytes of JSON as %d", objects, plain, packed)
	}
	for round := range 2 { // an item that is read twice is plain again
		for it, want := range before {
			if got := seen(it); got != want {
				t.Fatalf("round %d: an item is seen as\n%.300s\nbefore\n%.300s", round, got, want)
			}
		}
	}
	for _, sel := range []string{"app=a3", "app in (a3,a4)", "!app", "tier!=t1"} {
		f := cache.NewFilter(selector(t, sel), nil)
		got := names(c.Snapshot("pods"), f, "", "", "")
		var want []string
		for _, it := range all(c) {
			if f.Match(it) {
				want = append(want, it.Namespace+"/"+it.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d items, not %d", sel, len(got), len(want))
		}
	}
	if got := names(c.Snapshot("pods"), cache.NewFilter(nil, []cache.FieldTerm{{Index: 0, Value: "n7"}}), "", "", ""); len(got) != 24 {
		t.Errorf("%d pods are on a node", len(got))
	}
}

func TestPackingLeavesWhatIsReadAndWhatFits(t *testing.T) {
	c, _ := packedPods(t, 1200, 1<<20)
	pack(t, c)
	packed, _, _ := c.Packed()
	it := all(c)[5]
	first := it.JSON()
	if second := it.JSON(); &first[0] == &second[0] {
		t.Error("an object is kept as it is by being read once")
	}
	if third, fourth := it.JSON(), it.JSON(); &third[0] != &fourth[0] {
		t.Error("an object that is read again and again is unpacked each time")
	}
	it.Peek()
	if now, _, _ := c.Packed(); now != packed-1 {
		t.Errorf("%d objects are packed, %d before one was read", now, packed)
	}
	c, _ = packedPods(t, 100, 1<<20)
	if pack(t, c); c.Pack(t.Context()) != 0 {
		t.Error("packed though all fits")
	}
	c, _ = packedPods(t, 1200, -1)
	pack(t, c)
	if n, _, _ := c.Packed(); n != 0 {
		t.Errorf("%d objects are packed where none may be", n)
	}
}

func TestPackingAndForms(t *testing.T) {
	c, _ := packedPods(t, 1200, 8<<20) // nearly all of the items below
	items := all(c)
	made := 0
	form := func(it *cache.Item, key cache.FormKey) string {
		b, err := it.Bytes(key, func(it *cache.Item) ([]byte, error) {
			made++
			return append([]byte{0}, it.Peek()...), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	message, table := cache.FormKey{Form: cache.FormProtobuf, For: 1}, cache.FormKey{Form: cache.FormTableRow, For: 1}
	kept := cache.FormKey{Form: cache.FormJSON, For: 1}
	for _, it := range items {
		form(it, message)
		form(it, table)
	}
	form(items[9], kept)
	failed := errors.New("no form")
	if _, err := items[6].Form(cache.FormKey{Form: cache.FormCBOR}, func(*cache.Item) (any, error) { return nil, failed }); err != failed {
		t.Fatal(err)
	}
	pack(t, c)
	if n, _, _ := c.Packed(); n < 600 {
		t.Fatalf("%d objects are packed", n)
	}
	at := slices.IndexFunc(items, func(it *cache.Item) bool { return it.Has(message) && !it.Has(table) })
	if at < 0 {
		t.Fatal("no message is packed")
	}
	made = 0
	it := items[at]
	want := string(append([]byte{0}, it.Peek()...))
	if got, ok := it.AppendBytes([]byte("x"), message); !ok || string(got) != "x"+want {
		t.Errorf("a packed message came back as %.100q", got)
	}
	if got := form(it, message); got != want || made != 0 {
		t.Errorf("a packed message came back as %.100q, made %d times", got, made)
	}
	if form(it, table); made != 1 || !it.Has(table) {
		t.Error("a form that was dropped was not made again, once")
	}
	if form(items[9], kept); made != 1 {
		t.Error("what nobody could make again was dropped")
	}
	for _, other := range items {
		form(other, table)
	}
	pack(t, c) // drops the forms of packed items
	if it.Has(table) || form(it, message) != want {
		t.Error("a packed item keeps its forms, or lost its message")
	}
}

// TestFormsAreBounded: many clients request all objects in all forms, again and again; kept forms stay
// within the bound, with packed messages, and others are made each time.
func TestFormsAreBounded(t *testing.T) {
	const most = 1 << 20
	c, _ := packedPods(t, 4000, most)
	pack(t, c)
	items := all(c)
	for round := range 6 {
		var clients sync.WaitGroup
		for i := range 3 {
			clients.Go(func() {
				for _, it := range items {
					for _, form := range []cache.Form{cache.FormProtobuf, cache.FormCBOR, cache.FormTableRow} {
						got, err := it.Bytes(cache.FormKey{Form: form, For: i}, func(it *cache.Item) ([]byte, error) { return append([]byte{byte(form)}, it.Peek()...), nil })
						if err != nil || got[0] != byte(form) || string(got[1:]) != string(it.Peek()) {
							t.Errorf("a form came as %.100q, %v", got, err)
							return
						}
					}
				}
			})
		}
		clients.Wait()
		const atOnce = 3 * 4 << 10 // the last form of each client may not fit
		if got := c.PlainBytes(); got > most+atOnce {
			t.Fatalf("round %d: %d bytes are kept", round, got)
		}
		if c.Pack(t.Context()); c.PlainBytes() > most+atOnce {
			t.Fatalf("round %d: %d bytes are kept after packing", round, c.PlainBytes())
		}
	}
}

// TestSizesStay: the size of a message is known for as long as the item is there, packed or not.
func TestSizesStay(t *testing.T) {
	c, _ := packedPods(t, 1200, 1<<20)
	it := all(c)[5]
	if n, ok := it.Sized(); ok {
		t.Fatalf("%d bytes, which were not requested", n)
	}
	for range 2 {
		it.NoteSize(0)
		if n, ok := it.Sized(); n != 0 || !ok {
			t.Fatalf("%d, %v", n, ok)
		}
		it.NoteSize(77)
		pack(t, c)
		it.JSON()
		it.JSON()
		if n, ok := it.Sized(); n != 77 || !ok {
			t.Fatalf("%d, %v", n, ok)
		}
	}
}

// TestFormsCount: forms of objects count as the objects do, at once and not only in the next round.
func TestFormsCount(t *testing.T) {
	c, _ := packedPods(t, 1200, 1<<20)
	pack(t, c)
	before, made := c.PlainBytes(), int64(0)
	for _, it := range all(c)[:100] {
		form, err := it.Bytes(cache.FormKey{Form: cache.FormProtobuf}, func(it *cache.Item) ([]byte, error) { return it.Peek(), nil })
		if err != nil {
			t.Fatal(err)
		}
		made += int64(len(form))
	}
	if grown := c.PlainBytes() - before; grown != made {
		t.Errorf("%d bytes more are counted, not %d", grown, made)
	}
}

// TestFormsOfWhatIsUnpackedMeanwhile: making a form reads the item, which may stay unpacked
// after that; the form is kept nevertheless.
func TestFormsOfWhatIsUnpackedMeanwhile(t *testing.T) {
	c, _ := packedPods(t, 1200, 1<<20)
	pack(t, c)
	it := all(c)[5]
	made := 0
	for range 3 {
		got, err := it.Bytes(cache.FormKey{Form: cache.FormProtobuf}, func(it *cache.Item) ([]byte, error) {
			made++
			it.JSON()
			return it.JSON(), nil // the second use
		})
		if err != nil || string(got) != string(it.Peek()) {
			t.Fatalf("%.100s, %v", got, err)
		}
	}
	if made != 1 {
		t.Errorf("a form was made %d times", made)
	}
}

func TestDictionaryFollowsTheObjects(t *testing.T) {
	c, l := packedPods(t, 1200, 1<<20)
	pack(t, c)
	other := strings.Repeat("now they say something that nobody knew before; ", 60)
	for i := range 3000 {
		name := fmt.Sprintf("q%d", i)
		value := strings.Replace(largePod(name, i), "what all of them say ", strconv.Itoa(i*7919)+other, 1)
		c.Apply([]sqlstore.Change{l.write("new", name, value)})
		if i%1000 == 999 {
			pack(t, c)
		}
	}
	pack(t, c)
	for _, it := range all(c) {
		if !bytes.Contains(it.Peek(), []byte(`"resourceVersion":"`+strconv.FormatInt(it.Revision, 10)+`"`)) {
			t.Fatalf("%s came back as %.200s", it.Name, it.Peek())
		}
	}
	if n, plain, packed := c.Packed(); packed > plain/6 {
		t.Errorf("%d objects with %d bytes are packed into %d", n, plain, packed)
	}
}

func TestLoadPacksWhatDoesNotFit(t *testing.T) {
	l := newLog()
	for i := range 2000 {
		name := fmt.Sprintf("p%d", i)
		l.write(fmt.Sprintf("ns%d", i%7), name, largePod(name, i))
	}
	c := cache.NewWith(podCatalogue(), cache.Config{PlainBytes: 1 << 20})
	plain := cache.NewWith(podCatalogue(), cache.Config{PlainBytes: -1})
	for _, c := range []*cache.Cache{c, plain} {
		if _, err := c.Load(t.Context(), table{l}); err != nil {
			t.Fatal(err)
		}
	}
	if n, _, _ := c.Packed(); n < 500 {
		t.Errorf("%d objects came packed", n)
	}
	if n, _, _ := plain.Packed(); n != 0 {
		t.Errorf("%d objects came packed where none may be", n)
	}
	other := all(plain)
	for i, it := range all(c) {
		if seen(it) != seen(other[i]) {
			t.Fatalf("%s is read as\n%.300s\nelsewhere as\n%.300s", it.Name, seen(it), seen(other[i]))
		}
	}
}

func TestPackingDuringReadsAndWrites(t *testing.T) {
	c, l := packedPods(t, 1000, 1<<20)
	items := all(c)
	want := make([]string, len(items))
	for i, it := range items {
		want[i] = string(it.Peek())
	}
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for r := range 4 {
		readers.Go(func() {
			for i := r; ctx.Err() == nil; i = (i + 7) % len(items) {
				got, _ := items[i].Bytes(cache.FormKey{Form: cache.FormProtobuf}, func(it *cache.Item) ([]byte, error) { return it.JSON(), nil })
				if string(items[i].JSON()) != want[i] || string(got) != want[i] || items[i].Meta().UID != "u-"+items[i].Name {
					t.Errorf("%s is read as %.200s, and as %.200s", items[i].Name, items[i].JSON(), got)
					return
				}
			}
		})
	}
	for i := range 30 {
		for j := range 20 {
			c.Apply([]sqlstore.Change{l.write("more", fmt.Sprintf("p%d", i*20+j), largePod(fmt.Sprintf("p%d", i*20+j), i))})
		}
		c.Pack(ctx)
	}
	cancel()
	readers.Wait()
	if n, _, _ := c.Packed(); n == 0 {
		t.Error("nothing was packed")
	}
}

// TestFormsOfWhatCannotBePacked: objects that look like noise stay plain, but their forms are
// dropped like others.
func TestFormsOfWhatCannotBePacked(t *testing.T) {
	c, l := cache.NewWith(podCatalogue(), cache.Config{PlainBytes: 4 << 20, RingEvents: 10}), newLog()
	noise := rand.NewChaCha8([32]byte{7})
	for i := range 1000 {
		text := make([]byte, 1500)
		_, _ = noise.Read(text)
		name := fmt.Sprintf("p%d", i)
		value := strings.Replace(largePod(name, i), strings.Repeat("what all of them say ", 100), base64.StdEncoding.EncodeToString(text), 1)
		c.Apply([]sqlstore.Change{l.write("ns", name, value)})
	}
	message := cache.FormKey{Form: cache.FormProtobuf}
	for _, it := range all(c) {
		if _, err := it.Bytes(message, func(it *cache.Item) ([]byte, error) { return slices.Clone(it.Peek()), nil }); err != nil {
			t.Fatal(err)
		}
	}
	made := 0
	for _, it := range all(c) {
		if it.Has(message) {
			made++
		}
	}
	if made < 100 {
		t.Fatalf("%d forms found room", made)
	}
	pack(t, c)
	if n, _, _ := c.Packed(); n > 16 { // those of which the dictionary is made
		t.Fatalf("%d objects are packed", n)
	}
	kept := 0
	for _, it := range all(c) {
		if it.Has(message) {
			kept++
		}
		if !strings.Contains(string(it.Peek()), `"name":"`+it.Name+`"`) || it.Meta().UID != "u-"+it.Name {
			t.Fatalf("%s is %.200s", it.Name, it.Peek())
		}
	}
	if kept > 16 { // likewise
		t.Errorf("%d forms are kept beyond the bound", kept)
	}
}
