package judge

// checks reports the answers that clients found wrong, but for those that came after the database may have lost what they are about.
func (j *judge) checks() {
	lost := j.beforeLoss()
	for _, c := range j.r.Checks {
		if c.Return >= lost {
			j.open("checks of what the database may have lost")
			continue
		}
		if j.judged(c.Property); c.Wrong != "" {
			j.violate(c.Property, []string{c.String()}, "%s: %s", c.What, c.Wrong)
		}
	}
}
