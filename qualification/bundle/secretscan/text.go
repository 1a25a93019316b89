package secretscan

import (
	"bytes"
	"fmt"
	"io"
)

// Text is scanned in blocks of whole lines. Each block repeats the last sixteenth of the one before, so that what spans
// a few hundred lines is seen whole once. A block grows where cutting it would cut a line or wrapped base64, whose
// second half means nothing without the first.
const overlaps = 16

// view is a piece of text and where it comes from: a file or member, or something decoded out of another view. Places
// are computed only for findings, because decoding yields very many views.
type view struct {
	place  string // of a file or member
	parent *view  // of something decoded
	origin int    // where in the text of the parent it was
	step   string // how it was written there
	depth  int
	line   int // number of its first line
	text   []byte
}

// at is the place of an offset.
func (v *view) at(offset int) string {
	place := v.place
	if v.parent != nil {
		place = join(v.parent.at(v.origin), v.step)
	}
	before := v.text[:min(offset, len(v.text))]
	return join(place, fmt.Sprintf("line %d, column %d", v.line+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n')))
}

// blockWriter scans text that is written to it.
type blockWriter struct {
	job    *job
	view   view
	buffer []byte
	wait   int // bytes without which there is nothing to cut
}

func newBlockWriter(j *job, v view) *blockWriter { return &blockWriter{job: j, view: v} }

func (b *blockWriter) Write(p []byte) (int, error) {
	b.buffer = append(b.buffer, p...)
	for len(b.buffer) >= b.next() && !b.job.stopped {
		cut := b.cut()
		switch {
		case cut == 0 && len(b.buffer) < b.job.scanner.limits.Line:
			b.wait = len(b.buffer) + b.job.scanner.limits.Block
			continue
		case cut == 0:
			b.view.text = b.buffer
			b.job.limit(b.view.at(0), fmt.Sprintf("a line or an encoding of more than %d bytes", b.job.scanner.limits.Line))
			continue
		}
		b.wait = 0
		b.job.text(b.buffer[:cut], b.view)
		keep := max(cut-b.job.scanner.limits.Block/overlaps, 0)
		if next := bytes.IndexByte(b.buffer[keep:cut], '\n'); next >= 0 && keep+next+1 < cut {
			keep += next + 1
		}
		b.view.line += bytes.Count(b.buffer[:keep], []byte("\n"))
		b.buffer = append([]byte(nil), b.buffer[keep:]...)
	}
	if b.job.stopped {
		b.buffer = nil
	}
	return len(p), nil
}

// next is how many bytes are waited for.
func (b *blockWriter) next() int { return max(b.job.scanner.limits.Block, b.wait) }

// cut is the end of the last line in the second half of the buffer after which no encoding goes on, 0 where there is none.
func (b *blockWriter) cut() int {
	for end := bytes.LastIndexByte(b.buffer, '\n'); end > len(b.buffer)/2; {
		start := bytes.LastIndexByte(b.buffer[:end], '\n') + 1
		line := bytes.TrimSpace(b.buffer[start:end])
		if len(line) < wrappedLine || endOfRun(line, 0) < len(line) {
			return end + 1
		}
		end = start - 1
	}
	return 0
}

func (b *blockWriter) close() {
	b.job.text(b.buffer, b.view)
	b.buffer = nil
}

// blocks scans a reader as text.
func (j *job) blocks(r io.Reader, place string, depth int, exact bool) error {
	writer := newBlockWriter(j, view{place: place, depth: depth, line: 1})
	if _, err := io.Copy(writer, r); err != nil {
		writer.close()
		return j.damaged(place, depth, exact, err)
	}
	writer.close()
	return nil
}

// text scans one block, and everything that can be decoded out of it.
func (j *job) text(data []byte, v view) {
	if j.stopped || len(data) == 0 {
		return
	}
	v.text = data
	if v.depth > j.scanner.limits.Depth {
		j.limit(v.at(0), fmt.Sprintf("more than %d containers and encodings within each other", j.scanner.limits.Depth))
		return
	}
	j.knownSecrets(&v)
	j.rules(&v)
	j.kubernetes(&v)
	j.escapes(&v)
	j.runs(&v)
	j.percent(&v)
	j.entities(&v)
}

func (j *job) knownSecrets(v *view) {
	j.scanner.known.find(v.text, func(at int) { j.found(v, at, KnownSecret) })
}

// found adds a finding, and computes its place only while findings are still taken.
func (j *job) found(v *view, at int, kind Kind) {
	if len(j.findings) < mostFindings {
		j.add(v.at(at), kind)
	}
}

// derive scans something decoded out of a view.
func (j *job) derive(parent *view, origin int, step string, data []byte) {
	if j.stopped {
		return
	}
	if !j.spend(int64(len(data))) {
		j.limit(parent.at(origin), "it decodes to more than a file of this size may")
		return
	}
	j.text(data, view{parent: parent, origin: origin, step: step, depth: parent.depth + 1, line: 1})
}
