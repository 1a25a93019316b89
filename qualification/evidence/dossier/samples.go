package dossier

import (
	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/sample"
)

// loadSamples reads the streams of readings that the cell kept, or returns nil where it kept none. A stream that is
// not whole is loaded with its problem, which is for the judge.
func loadSamples(snapshot *evidence.Snapshot, cell evidence.CellEntry, files []evidence.Entry) (*sample.Set, error) {
	var set *sample.Set
	for _, entry := range files {
		source, ok := sample.SourceOf(entry.Name)
		if !ok {
			continue
		}
		content, err := snapshot.Open(cell.Prefix() + entry.Name)
		if err != nil {
			return nil, err
		}
		if set == nil {
			set = &sample.Set{}
		}
		err = set.Add(source, entry.Digest, content)
		_ = content.Close()
		if err != nil {
			return nil, err
		}
	}
	return set, nil
}
