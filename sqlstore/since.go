package sqlstore

// SearchSecond returns the first second from low to high for which reached returns true, high+1 if there is none.
// reached must be true for all that follow. It is called a logarithmic number of times.
func SearchSecond(low, high int64, reached func(second int64) (bool, error)) (int64, error) {
	for low <= high {
		middle := low + (high-low)/2
		ok, err := reached(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			high = middle - 1
		} else {
			low = middle + 1
		}
	}
	return low, nil
}
