package graph

// arena holds values with numbers. Number 0 is none.
type arena[T any] struct {
	chunks []*[chunk]T
	used   uint32   // the highest number in use so far
	free   []uint32 // released numbers
}

const chunk = 1024

func (a *arena[T]) at(i uint32) *T { return &a.chunks[i/chunk][i%chunk] }

// take gives a number away, whose value is zero.
func (a *arena[T]) take() uint32 {
	if n := len(a.free); n > 0 {
		i := a.free[n-1]
		a.free = a.free[:n-1]
		return i
	}
	a.used++
	if int(a.used/chunk) == len(a.chunks) {
		a.chunks = append(a.chunks, new([chunk]T))
	}
	return a.used
}

func (a *arena[T]) give(i uint32) {
	var zero T
	*a.at(i) = zero
	a.free = append(a.free, i)
}

func (a *arena[T]) len() int { return int(a.used) - len(a.free) }
