package profile

// Unreachable says, with the arithmetic, why no operator can keep a target on the workload of a cell with these axis
// values, and nothing where one can. Lint refuses such a profile before anything runs; evidence that was taken under
// one nevertheless must not be held against the product.
func (p *Profile) Unreachable(t Target, matrix string, axes map[string]string) string {
	var found findings
	workload, variant := p.Workload.In(matrix, axes)
	s := setting{variant, workload}
	found.cycles(s, t)
	found.changes(s, t)
	found.age(p, s, t)
	for _, finding := range found {
		if finding.Arithmetic != "" { // else something is not declared, which leaves the bound reachable
			return finding.Problem + ": " + finding.Arithmetic
		}
	}
	return ""
}
