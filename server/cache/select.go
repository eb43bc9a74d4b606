package cache

// Selection is what a filter selects of a snapshot, for one namespace or all. Which way is the
// shortest is settled when it is made: by key, by index, or by looking at all. It may be read in
// parts, and is for one reader at a time. Of the state that the snapshot is of it holds no more
// than what it reads: the tree of all items, or the items of one term.
type Selection struct {
	matcher   matcher
	namespace string
	only      *Item   // the one that is selected, if its key is known
	entries   entries // else these are looked through
	all       bool    // they are what the filter asks for
	items     *items  // looked through if there are no entries; nil: nothing is selected
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
	if e, ok := s.best(f, out.namespace); ok {
		out.entries = e
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
	case s.entries.len() > 0:
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
	p := pivot(from.Namespace, from.Name)
	defer release(p)
	s.entries.ascend(p, func(it *Item) bool {
		if s.namespace != "" && it.Namespace != s.namespace {
			return false
		}
		return !s.all && !s.matcher.Match(it) || fn(it)
	})
}

// entries are those of a term.
func (v *state) entries(of term) entries {
	if of.field() {
		return v.index.of(of)
	}
	return v.labels.of(of)
}

// fewEntries is how many entries are looked at sooner than the items of a namespace are counted.
const fewEntries = 32

// best are the entries of the index key that has the fewest, if that beats the plain way.
func (s *Snapshot) best(f *Filter, namespace string) (best entries, ok bool) {
	if s.v.corrupt { // indexes do not have what cannot be read
		return best, false
	}
	for _, k := range f.postings(s.resource, s.v.index != nil, s.v.labels != nil) {
		if e := s.v.entries(k); !ok || e.len() < best.len() {
			best, ok = e, true
		}
	}
	if ok && namespace != "" && best.len() > fewEntries {
		ok = best.len() <= s.Count(namespace, Position{})
	}
	return best, ok
}
