package dump

// EnumLabels returns the labels of an enum type as SQL string constants, in order, or nil for any other entry.
func EnumLabels(e Entry) []string {
	if e.Type != "TYPE" || len(e.Statements) == 0 {
		return nil
	}
	c := newCursor(e.Statements[0])
	if !c.accept("CREATE", "TYPE") {
		return nil
	}
	if _, ok := c.name(); !ok || !c.accept("AS", "ENUM") {
		return nil
	}
	_, labels, _ := Items(e.Statements[0])
	return labels
}
