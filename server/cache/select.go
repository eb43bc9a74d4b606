package cache

import "unique"

// Selection is what a filter selects of a snapshot, for one namespace or all. Which way is the
// shortest is settled when it is made: by key, by index, or by looking at all. It may be read in
// parts, and is for one reader at a time. Of the state that the snapshot is of it holds no more
// than the one tree that it reads.
type Selection struct {
	matcher   matcher
	namespace string
	only      *Item     // the one that is selected, if its key is known
	items     *items    // looked through; nil: it is entries, or only
	entries   *postings // those of term are looked at
	term      unique.Handle[term]
	all       bool // they are what the filter asks for
}

// Select calls fn in key order with the items that a filter selects, for one
// namespace or all (""), from a position, until fn returns false.
func (s *Snapshot) Select(f *Filter, namespace string, from Position, fn func(*Item) bool) {
	s.Selection(f, namespace).Ascend(from, fn)
}

// Selection is what a filter selects, for one namespace or all ("").
func (s *Snapshot) Selection(f *Filter, namespace string) *Selection {
	out := &Selection{matcher: matcher{Filter: f}, namespace: namespace}
	if s.v == nil {
		return out
	}
	if f.Everything() {
		out.items = s.v.items
		return out
	}
	if ns, ok := f.pinned(FieldNamespace); ok && namespace == "" {
		out.namespace = ns
	}
	if name, ok := f.pinned(FieldName); ok {
		// Where no namespace is named, only objects of cluster scope have none.
		it := s.v.get(out.namespace, name)
		if it != nil || out.namespace != "" {
			out.only = it
			return out
		}
	}
	if f.labeled && s.v.labels == nil {
		s.resource.indexLabels()
	}
	if k, ok := s.best(f, out.namespace); ok {
		out.entries, out.term = s.v.postings(k), unique.Make(k)
		out.all = len(f.Fields)+len(f.terms) == 1 && f.Unsure == nil
		return out
	}
	out.items = s.v.items
	return out
}

// Ascend calls fn in key order with what is selected from a position on, until fn returns false.
func (s *Selection) Ascend(from Position, fn func(*Item) bool) {
	switch {
	case s.only != nil:
		if from.reached(s.only) && s.matcher.Match(s.only) {
			fn(s.only)
		}
	case s.entries != nil:
		s.ascendEntries(from, fn)
	case s.items == nil:
	case s.matcher.Everything():
		ascend(s.items, s.namespace, from, fn)
	default:
		ascend(s.items, s.namespace, from, func(it *Item) bool { return !s.matcher.match(it) || fn(it) })
	}
}

func (s *Selection) ascendEntries(from Position, fn func(*Item) bool) {
	from = from.within(s.namespace)
	first := posting{s.term, pivot(from.Namespace, from.Name)}
	defer release(first.item)
	s.entries.Ascend(first, func(e posting) bool {
		if e.term != s.term || s.namespace != "" && e.item.Namespace != s.namespace {
			return false
		}
		return !s.all && !s.matcher.Match(e.item) || fn(e.item)
	})
}

// postings is the index that a term is of.
func (v *state) postings(of term) *postings {
	if of.field() {
		return v.index
	}
	return v.labels
}

// best picks the index key with the fewest entries, if that beats the plain way.
func (s *Snapshot) best(f *Filter, namespace string) (best term, ok bool) {
	if s.v.corrupt { // indexes do not have what cannot be read
		return best, false
	}
	keys := f.postings(s.resource, s.v.index != nil, s.v.labels != nil)
	if len(keys) == 1 && namespace == "" {
		return keys[0], true
	}
	for _, k := range keys {
		if s.few(k) {
			return k, true
		}
	}
	fewest := s.v.items.Len()
	if namespace != "" {
		fewest = s.Count(namespace, Position{})
	}
	for _, k := range keys {
		index := s.v.postings(k)
		from := rank(index, func(p posting) bool {
			return p.term.Value().compare(k) >= 0
		})
		to := rank(index, func(p posting) bool {
			return p.term.Value().compare(k) > 0
		})
		if to-from <= fewest {
			best, fewest, ok = k, to-from, true
		}
	}
	return best, ok
}

// fewEntries is how many entries of an index key are looked at sooner than counted.
const fewEntries = 32

// few says that an index key has so few entries that no other way can be much shorter.
func (s *Snapshot) few(k term) bool {
	first := posting{unique.Make(k), pivot("", "")}
	defer release(first.item)
	n := 0
	s.v.postings(k).Ascend(first, func(e posting) bool {
		if e.term != first.term {
			return false
		}
		n++
		return n <= fewEntries
	})
	return n <= fewEntries
}
