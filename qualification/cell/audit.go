package cell

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
)

func addAuditLog(cell *evidence.Cell, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the audit log of an API server: %w", err)
	}
	defer func() { _ = file.Close() }()
	// The log is still being written. What was read up to now is whole lines and perhaps the beginning of one more,
	// which is not part of the time that is counted in.
	server := filepath.Base(filepath.Dir(path))
	return dossier.AddAuditLog(cell, server, 0, &wholeLines{source: bufio.NewReaderSize(file, 1<<20)})
}

// wholeLines reads up to the last line that has its end.
type wholeLines struct {
	source *bufio.Reader
	line   []byte
}

func (w *wholeLines) Read(buffer []byte) (int, error) {
	if len(w.line) == 0 {
		line, err := w.source.ReadBytes('\n')
		if err != nil { // io.EOF with an unfinished line, which is left out
			return 0, err
		}
		w.line = line
	}
	n := copy(buffer, w.line)
	w.line = w.line[n:]
	return n, nil
}
