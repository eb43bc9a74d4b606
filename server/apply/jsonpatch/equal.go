package jsonpatch

// equal compares two values. Numbers are compared as they are written.
func (r *run) equal(a, b *node) (bool, error) {
	if a == nil || b == nil {
		return a == nil && b == nil, nil
	}
	if err := r.Spend(1); err != nil {
		return false, err
	}
	f, err := a.open(r.Budget)
	if err != nil {
		return false, err
	}
	g, err := b.open(r.Budget)
	if err != nil || f != g {
		return false, err
	}
	switch f {
	case object:
		return r.equalObjects(a, b)
	case array:
		return r.equalArrays(a, b)
	}
	return a.compact() == b.compact(), nil
}

func (r *run) equalObjects(a, b *node) (bool, error) {
	if len(a.members) != len(b.members) {
		return false, nil
	}
	for key, v := range a.members {
		w, ok := b.members[key]
		if !ok {
			return false, nil
		}
		if same, err := r.equal(v, w); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (r *run) equalArrays(a, b *node) (bool, error) {
	if a.elements.n != b.elements.n {
		return false, nil
	}
	at, left := 0, b.elements.blocks // where the elements of b go on
	same := true
	err := a.elements.all(func(_ int, v *node) error {
		for at == len(left[0]) {
			at, left = 0, left[1:]
		}
		one, err := r.equal(v, left[0][at])
		at++
		if err == nil && !one {
			same, err = false, ErrTest // to end the walk
		}
		return err
	})
	if !same {
		return false, nil
	}
	return err == nil, err
}
